/* A fake nvidia-smi. It prints what the fake NVML reports, in the formats of nvidia-smi: the table, -L, -q -x, -q, and
 * --query-gpu=... --format=csv. A value that the machine does not state is N/A. */
#include "fake.h"

#include <time.h>

enum { GPU_IS_LOST = 15, RESET_REQUIRED = 16, NOT_FOUND = 6 };

static const char *value_of(int n, const char *field, char *to, size_t size) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  int has_mig = fake.gpu[n].mig[0] || is_state(n, "mig-without-instances");
  sscanf(fake.gpu[n].slot, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
  snprintf(to, size, "%08X:%02X:%02X.%X", domain, bus, slot, function & 7);
  if (!strcmp(field, "pci.bus_id") || !strcmp(field, "gpu_bus_id")) return to;
  if (!strcmp(field, "index")) return snprintf(to, size, "%d", n), to;
  if (!strcmp(field, "count")) return snprintf(to, size, "%d", fake.gpus), to;
  if (!strcmp(field, "driver_version")) return fake.release;
  if (is_state(n, "lost")) return "[GPU is lost]";
  if (is_state(n, "reset-required")) return "[GPU requires reset]";
  if (!strcmp(field, "name") || !strcmp(field, "gpu_name")) return fake.gpu[n].name;
  if (!strcmp(field, "uuid") || !strcmp(field, "gpu_uuid")) return fake.gpu[n].uuid;
  if (!strcmp(field, "compute_cap")) return snprintf(to, size, "%d.%d", fake.gpu[n].cc >> 8, fake.gpu[n].cc & 255), to;
  if (!strcmp(field, "pci.domain")) return snprintf(to, size, "0x%04X", domain), to;
  if (!strcmp(field, "pci.bus")) return snprintf(to, size, "0x%02X", bus), to;
  if (!strcmp(field, "pci.device")) return snprintf(to, size, "0x%02X", slot), to;
  if (!strcmp(field, "pci.device_id") && fake.gpu[n].device) return snprintf(to, size, "0x%04X10DE", fake.gpu[n].device), to;
  if (!strcmp(field, "compute_mode")) return is_state(n, "compute-prohibited") ? "Prohibited" : "Default";
  if (!strcmp(field, "mig.mode.current") || !strcmp(field, "mig.mode.pending"))
    return has_mig ? "Enabled" : fake.gpu[n].cc >= 8 * 256 ? "Disabled" : "[N/A]";
  return "[N/A]";
}

/* The fields that `nvidia-smi --help-query-gpu` lists and whose values a simulated machine does not state. */
static const char *const others[] = {
    "timestamp", "vgpu_driver_capability.", "serial", "gpu_serial", "pci.sub_device_id", "pcie.", "display_", "persistence_mode",
    "accounting.", "driver_model.", "vbios_version", "inforom.", "gom.", "fan.speed", "pstate", "clocks", "memory.", "utilization.",
    "encoder.", "temperature.", "power.", "enforced.", "ecc.", "retired_pages.", "addressing_mode", "gsp.", "protected_memory.",
    "fabric.", "gpu_recovery_action", "gpu_reset_status.", "reset_status.", "platform.", "hostname", "dramEncryption.", "module_id",
};

static int is_field(const char *name) {
  static const char *const own[] = {"index", "count", "driver_version", "name", "gpu_name", "uuid", "gpu_uuid", "compute_cap",
                                    "compute_mode", "pci.", "gpu_bus_id", "mig.mode."};
  for (size_t k = 0; k < sizeof own / sizeof *own; k++)
    if (!strncmp(name, own[k], strlen(own[k]))) return 1;
  for (size_t k = 0; k < sizeof others / sizeof *others; k++)
    if (!strncmp(name, others[k], strlen(others[k]))) return 1;
  return 0;
}

/* The units in the header of CSV. */
static const char *unit_of(const char *field) {
  return !strncmp(field, "memory.", 7)                                   ? " [MiB]"
         : !strncmp(field, "utilization.", 12) || !strcmp(field, "fan.speed") ? " [%]"
         : !strncmp(field, "power.", 6) && strcmp(field, "power.management")  ? " [W]"
         : !strncmp(field, "clocks.", 7) && !strstr(field, "reasons")         ? " [MHz]"
                                                                              : "";
}

/* Returns whether a list of indices, UUIDs and PCI addresses has the GPU. */
static int is_selected(const char *list, int n) {
  char bus[64], index[16];
  value_of(n, "pci.bus_id", bus, sizeof bus);
  snprintf(index, sizeof index, "%d", n);
  for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
    size_t length = strcspn(list, ",");
    const char *names[] = {index, fake.gpu[n].uuid, bus, fake.gpu[n].slot};
    for (int k = 0; k < 4; k++)
      if (strlen(names[k]) == length && !strncasecmp(list, names[k], length)) return 1;
  }
  return !list;
}

static int print_csv(char *fields, const char *format, const char *list) {
  char buffer[256], *at = fields;
  const char *names[64];
  int count = 0, no_units = strstr(format, "nounits") != 0;
  for (char *name; count < 64 && (name = strtok(at, ", ")); at = 0) {
    if (!is_field(name)) {
      printf("Field \"%s\" is not a valid field to query.\n\n", name);
      return 2;
    }
    names[count++] = name;
  }
  for (int n = strstr(format, "noheader") ? 0 : -1; n < fake.gpus; n++)
    if (n < 0 || is_selected(list, n))
      for (int k = 0; k < count; k++)
        printf("%s%s%s", n < 0 ? names[k] : value_of(n, names[k], buffer, sizeof buffer), n < 0 && !no_units ? unit_of(names[k]) : "",
               k + 1 < count ? ", " : "\n");
  return 0;
}

static void escaped(const char *text) {
  for (; *text; text++)
    switch (*text) {
      case '<': fputs("&lt;", stdout); break;
      case '>': fputs("&gt;", stdout); break;
      case '&': fputs("&amp;", stdout); break;
      default: putchar(*text);
    }
}

static void element(const char *indent, const char *name, const char *value) {
  printf("%s<%s>", indent, name);
  escaped(value);
  printf("</%s>\n", name);
}

/* A placeholder has no brackets outside of CSV. */
static const char *plain(int n, const char *field, char *to, size_t size) {
  const char *value = value_of(n, field, to, size);
  if (*value != '[') return value;
  snprintf(to, size, "%.*s", (int)strlen(value) - 2, value + 1);
  return to;
}

static void print_xml(const char *now, const char *cuda, const char *list) {
  char value[256];
  printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n");
  element("\t", "timestamp", now);
  element("\t", "driver_version", fake.release);
  element("\t", "cuda_version", cuda);
  printf("\t<attached_gpus>%d</attached_gpus>\n", fake.gpus);
  for (int n = 0; n < fake.gpus; n++) {
    int reset = is_state(n, "reset-required"), instance = fake.gpu[n].mig[0] != 0;
    if (!is_selected(list, n)) continue;
    printf("\t<gpu id=\"%s\">\n", value_of(n, "pci.bus_id", value, sizeof value));
    element("\t\t", "product_name", plain(n, "name", value, sizeof value));
    printf("\t\t<mig_mode>\n");
    element("\t\t\t", "current_mig", plain(n, "mig.mode.current", value, sizeof value));
    element("\t\t\t", "pending_mig", plain(n, "mig.mode.pending", value, sizeof value));
    printf("\t\t</mig_mode>\n\t\t<mig_devices>\n");
    if (instance)
      printf("\t\t\t<mig_device>\n\t\t\t\t<index>0</index>\n\t\t\t\t<gpu_instance_id>1</gpu_instance_id>\n"
             "\t\t\t\t<compute_instance_id>0</compute_instance_id>\n\t\t\t</mig_device>\n");
    else
      printf("\t\t\tNone\n");
    printf("\t\t</mig_devices>\n");
    element("\t\t", "uuid", fake.gpu[n].uuid);
    printf("\t\t<minor_number>%d</minor_number>\n", n);
    element("\t\t", "compute_mode", plain(n, "compute_mode", value, sizeof value));
    printf("\t\t<gpu_reset_status>\n\t\t\t<reset_required>%s</reset_required>\n\t\t</gpu_reset_status>\n", reset ? "Yes" : "No");
    printf("\t\t<pci>\n");
    if (fake.gpu[n].device) printf("\t\t\t<pci_device_id>%04X10DE</pci_device_id>\n", fake.gpu[n].device);
    element("\t\t\t", "pci_bus_id", value_of(n, "pci.bus_id", value, sizeof value));
    printf("\t\t</pci>\n\t\t<fb_memory_usage>\n\t\t\t<total>N/A</total>\n\t\t\t<used>N/A</used>\n\t\t\t<free>N/A</free>\n"
           "\t\t</fb_memory_usage>\n\t\t<processes>\n\t\t</processes>\n\t</gpu>\n");
  }
  printf("</nvidia_smi_log>\n");
}

static void print_list(const char *list) {
  for (int n = 0; n < fake.gpus; n++) {
    if (!is_selected(list, n)) continue;
    printf("GPU %d: %s (UUID: %s)\n", n, fake.gpu[n].name, fake.gpu[n].uuid);
    if (fake.gpu[n].mig[0]) printf("  MIG 1g.10gb     Device  0: (UUID: %s)\n", fake.gpu[n].mig);
  }
}

static void print_log(const char *now, const char *cuda, const char *list) {
  char value[256];
  printf("\n==============NVSMI LOG==============\n\nTimestamp                                 : %s\n"
         "Driver Version                            : %s\nCUDA Version                              : %s\n\n"
         "Attached GPUs                             : %d\n", now, fake.release, cuda, fake.gpus);
  for (int n = 0; n < fake.gpus; n++)
    if (is_selected(list, n))
      printf("GPU %s\n    Product Name                          : %s\n    GPU UUID                              : %s\n\n",
             value_of(n, "pci.bus_id", value, sizeof value), fake.gpu[n].name, fake.gpu[n].uuid);
}

static void print_table(const char *now, const char *cuda, const char *list) {
  char bus[64], mode[64], mig[64];
  const char *line = "+-----------------------------------------------------------------------------------------+\n";
  const char *columns = "+-----------------------------------------+------------------------+----------------------+\n";
  printf("%s\n%s| NVIDIA-SMI %-22.22s Driver Version: %-14.14s CUDA Version: %-9.9s|\n%s", now, line, fake.release, fake.release, cuda,
         "|-----------------------------------------+------------------------+----------------------+\n");
  printf("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
         "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
         "|                                         |                        |               MIG M. |\n"
         "|=========================================+========================+======================|\n");
  for (int n = 0; n < fake.gpus; n++)
    if (is_selected(list, n))
      printf("| %3d  %-26.26s %6.6s  |   %-16.16s N/A |                  N/A |\n"
             "| N/A   N/A    N/A             N/A /  N/A |             N/A /  N/A |      N/A %11.11s |\n"
             "|                                         |                        | %20.20s |\n%s",
             n, fake.gpu[n].name, "N/A", value_of(n, "pci.bus_id", bus, sizeof bus), plain(n, "compute_mode", mode, sizeof mode),
             plain(n, "mig.mode.current", mig, sizeof mig), columns);
  printf("\n%s| Processes:                                                                              |\n"
         "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
         "|        ID   ID                                                               Usage      |\n"
         "|=========================================================================================|\n"
         "|  No running processes found                                                             |\n%s", line, line);
}

/* Initializes NVML and reads the configuration next to it. Returns the exit status of an error, which it prints. */
static int open_nvml(void) {
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  int (*init)(void) = nvml ? (int (*)(void))dlsym(nvml, "nvmlInit_v2") : 0;
  const char *(*describe)(int) = nvml ? (const char *(*)(int))dlsym(nvml, "nvmlErrorString") : 0;
  Dl_info where;
  int status;
  if (!init || !describe || !dladdr((void *)init, &where)) {
    printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly "
           "installed and present in your system.\n");
    return 12;
  }
  status = init();
  if (status == 9)
    printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is "
           "installed and running.\n\n");
  else if (status)
    printf("Failed to initialize NVML: %s\n", describe(status));
  else
    fake_read_of(where.dli_fname);
  return status;
}

int main(int count, char **words) {
  char now[64], cuda[16], *fields = 0;
  const char *format = "", *list = 0;
  int xml = 0, query = 0, names = 0, status;
  time_t seconds = time(0);
  for (int k = 1; k < count; k++) {
    char *word = words[k], *value = strchr(word, '=');
    if (!strcmp(word, "-L") || !strcmp(word, "--list-gpus")) names = 1;
    else if (!strcmp(word, "-q") || !strcmp(word, "--query")) query = 1;
    else if (!strcmp(word, "-x") || !strcmp(word, "--xml-format")) xml = 1;
    else if (!strcmp(word, "-qx") || !strcmp(word, "-xq")) query = xml = 1;
    else if (!strncmp(word, "--query-gpu=", 12)) fields = word + 12;
    else if (!strcmp(word, "--query-gpu") && k + 1 < count) fields = words[++k];
    else if (!strncmp(word, "--format=", 9)) format = word + 9;
    else if (!strcmp(word, "--format") && k + 1 < count) format = words[++k];
    else if (!strncmp(word, "--id=", 5)) list = value + 1;
    else if ((!strcmp(word, "-i") || !strcmp(word, "--id")) && k + 1 < count) list = words[++k];
    else {
      printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
      return 1;
    }
  }
  if ((status = open_nvml())) return status;
  strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
  snprintf(cuda, sizeof cuda, "%d.%d", fake.cuda / 1000, fake.cuda % 1000 / 10);
  if (!fake.gpus) {
    printf("No devices were found\n");
    return NOT_FOUND;
  }
  if (fields && strncmp(format, "csv", 3)) {
    printf("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n");
    return 2;
  }
  if (fields) return print_csv(fields, format, list);
  if (names) print_list(list);
  else if (xml) print_xml(now, cuda, list);
  else if (query) print_log(now, cuda, list);
  else print_table(now, cuda, list);
  for (int n = 0; n < fake.gpus; n++)
    if (is_selected(list, n) && is_state(n, "lost")) return GPU_IS_LOST;
  return 0;
}
