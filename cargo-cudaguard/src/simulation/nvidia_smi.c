/* A fake nvidia-smi. It prints what the fake NVML reports, in the formats of nvidia-smi 550: the table, -L, -q -x, -q, and
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
  if (!strcmp(field, "compute_mode")) {
    static const char *const modes[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    return modes[compute_mode(n)];
  }
  if (!strcmp(field, "product_architecture")) {
    int cc = fake.gpu[n].cc;
    return cc >= 0xa00 ? "Blackwell" : cc >= 0x900 ? "Hopper" : cc >= 0x809 ? "Ada Lovelace" : cc >= 0x800 ? "Ampere" : cc >= 0x705 ? "Turing" : cc >= 0x700 ? "Volta" : cc >= 0x600 ? "Pascal" : cc >= 0x500 ? "Maxwell" : "Kepler";
  }
  if (!strncmp(field, "memory.", 7) && strcmp(field, "memory.reserved") && fake.gpu[n].memory)
    return snprintf(to, size, "%d MiB", strcmp(field, "memory.used") ? fake.gpu[n].memory : 0), to;
  if (!strcmp(field, "utilization.gpu") || !strcmp(field, "utilization.memory")) return "0 %";
  if (!strcmp(field, "temperature.gpu")) return snprintf(to, size, "%d", IDLE_CELSIUS), to;
  if (!strcmp(field, "power.draw")) return snprintf(to, size, "%d.00 W", IDLE_WATTS), to;
  if (!strcmp(field, "pstate")) return snprintf(to, size, "P%d", IDLE_STATE), to;
  if (!strcmp(field, "persistence_mode")) return "Disabled";
  if (!strcmp(field, "minor_number")) return snprintf(to, size, "%d", n), to;
  if (!strcmp(field, "reset_status.reset_required")) return is_state(n, "reset-required") ? "Yes" : "No";
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
    for (int k = 0; k < count && (n < 0 || is_selected(list, n)); k++) {
      const char *value = n < 0 ? names[k] : value_of(n, names[k], buffer, sizeof buffer), *unit = n < 0 ? unit_of(names[k]) : "";
      size_t length = n >= 0 && no_units && *unit_of(names[k]) && *value != '[' ? strcspn(value, " ") : strlen(value);
      printf("%.*s%s%s", (int)length, value, unit, k + 1 < count ? ", " : "\n");
    }
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

/* A placeholder has no brackets outside of CSV. */
static const char *plain(int n, const char *field, char *to, size_t size) {
  const char *value = value_of(n, field, to, size);
  if (*value != '[') return value;
  snprintf(to, size, "%.*s", (int)strlen(value) - 2, value + 1);
  return to;
}

/* A value of a GPU in -q and -q -x: its depth, the name in each, and the field or, after `=`, the text. A group has no value. */
static const struct {
  int depth;
  const char *label, *tag, *field;
} values[] = {
    {1, "Product Name", "product_name", "name"},
    {1, "Product Brand", "product_brand", "=N/A"},
    {1, "Product Architecture", "product_architecture", "product_architecture"},
    {1, "Display Mode", "display_mode", "=N/A"},
    {1, "Display Active", "display_active", "=Disabled"},
    {1, "Persistence Mode", "persistence_mode", "persistence_mode"},
    {1, "Addressing Mode", "addressing_mode", "=N/A"},
    {1, "MIG Mode", "mig_mode", 0},
    {2, "Current", "current_mig", "mig.mode.current"},
    {2, "Pending", "pending_mig", "mig.mode.pending"},
    {1, 0, "mig_devices", 0},
    {1, "Accounting Mode", "accounting_mode", "=Disabled"},
    {1, "Accounting Mode Buffer Size", "accounting_mode_buffer_size", "=N/A"},
    {1, "Driver Model", "driver_model", 0},
    {2, "Current", "current_dm", "=N/A"},
    {2, "Pending", "pending_dm", "=N/A"},
    {1, "Serial Number", "serial", "=N/A"},
    {1, "GPU UUID", "uuid", "uuid"},
    {1, "Minor Number", "minor_number", "minor_number"},
    {1, "VBIOS Version", "vbios_version", "=N/A"},
    {1, "MultiGPU Board", "multigpu_board", "=No"},
    {1, "Board ID", "board_id", "=N/A"},
    {1, "Board Part Number", "board_part_number", "=N/A"},
    {1, "GPU Part Number", "gpu_part_number", "=N/A"},
    {1, "Inforom Version", "inforom_version", 0},
    {2, "Image Version", "img_version", "=N/A"},
    {2, "OEM Object", "oem_object", "=N/A"},
    {2, "ECC Object", "ecc_object", "=N/A"},
    {2, "Power Management Object", "pwr_object", "=N/A"},
    {1, "GPU Operation Mode", "gpu_operation_mode", 0},
    {2, "Current", "current_gom", "=N/A"},
    {2, "Pending", "pending_gom", "=N/A"},
    {1, "GPU Virtualization Mode", "gpu_virtualization_mode", 0},
    {2, "Virtualization Mode", "virtualization_mode", "=None"},
    {2, "Host VGPU Mode", "host_vgpu_mode", "=N/A"},
    {1, "GPU Reset Status", "gpu_reset_status", 0},
    {2, "Reset Required", "reset_required", "reset_status.reset_required"},
    {2, "Drain and Reset Recommended", "drain_and_reset_recommended", "=N/A"},
    {1, "GSP Firmware Version", "gsp_firmware_version", "=N/A"},
    {1, "PCI", "pci", 0},
    {2, "Bus", "pci_bus", "pci.bus"},
    {2, "Device", "pci_device", "pci.device"},
    {2, "Domain", "pci_domain", "pci.domain"},
    {2, "Device Id", "pci_device_id", "pci.device_id"},
    {2, "Bus Id", "pci_bus_id", "pci.bus_id"},
    {2, "Sub System Id", "pci_sub_system_id", "=N/A"},
    {2, "GPU Link Info", "pci_gpu_link_info", 0},
    {3, "PCIe Generation", "pcie_gen", 0},
    {4, "Max", "max_link_gen", "=N/A"},
    {4, "Current", "current_link_gen", "=N/A"},
    {3, "Link Width", "link_widths", 0},
    {4, "Max", "max_link_width", "=N/A"},
    {4, "Current", "current_link_width", "=N/A"},
    {2, "Tx Throughput", "tx_util", "=N/A"},
    {2, "Rx Throughput", "rx_util", "=N/A"},
    {1, "Fan Speed", "fan_speed", "=N/A"},
    {1, "Performance State", "performance_state", "pstate"},
    {1, "FB Memory Usage", "fb_memory_usage", 0},
    {2, "Total", "total", "memory.total"},
    {2, "Reserved", "reserved", "memory.reserved"},
    {2, "Used", "used", "memory.used"},
    {2, "Free", "free", "memory.free"},
    {1, "BAR1 Memory Usage", "bar1_memory_usage", 0},
    {2, "Total", "total", "=N/A"},
    {2, "Used", "used", "=N/A"},
    {2, "Free", "free", "=N/A"},
    {1, "Compute Mode", "compute_mode", "compute_mode"},
    {1, "Utilization", "utilization", 0},
    {2, "Gpu", "gpu_util", "utilization.gpu"},
    {2, "Memory", "memory_util", "utilization.memory"},
    {2, "Encoder", "encoder_util", "=N/A"},
    {2, "Decoder", "decoder_util", "=N/A"},
    {1, "ECC Mode", "ecc_mode", 0},
    {2, "Current", "current_ecc", "=N/A"},
    {2, "Pending", "pending_ecc", "=N/A"},
    {1, "Temperature", "temperature", 0},
    {2, "GPU Current Temp", "gpu_temp", "temperature.gpu"},
    {2, "GPU Shutdown Temp", "gpu_temp_max_threshold", "=N/A"},
    {2, "GPU Slowdown Temp", "gpu_temp_slow_threshold", "=N/A"},
    {2, "Memory Current Temp", "memory_temp", "=N/A"},
    {1, "GPU Power Readings", "gpu_power_readings", 0},
    {2, 0, "power_state", "pstate"},
    {2, "Power Draw", "power_draw", "power.draw"},
    {2, "Current Power Limit", "current_power_limit", "=N/A"},
    {2, "Default Power Limit", "default_power_limit", "=N/A"},
    {2, "Min Power Limit", "min_power_limit", "=N/A"},
    {2, "Max Power Limit", "max_power_limit", "=N/A"},
    {1, "Clocks", "clocks", 0},
    {2, "Graphics", "graphics_clock", "=N/A"},
    {2, "SM", "sm_clock", "=N/A"},
    {2, "Memory", "mem_clock", "=N/A"},
    {2, "Video", "video_clock", "=N/A"},
    {1, "Max Clocks", "max_clocks", 0},
    {2, "Graphics", "graphics_clock", "=N/A"},
    {2, "SM", "sm_clock", "=N/A"},
    {2, "Memory", "mem_clock", "=N/A"},
    {2, "Video", "video_clock", "=N/A"},
    {1, "Processes", "processes", 0},
    {0, 0, 0, 0},
};

static const char *shown_value(int n, int k, char *to, size_t size) {
  if (values[k].field[0] == '=') return values[k].field + 1;
  const char *value = plain(n, values[k].field, to, size);
  if (strcmp(values[k].field, "temperature.gpu") || *value > '9') return value;
  return snprintf(to, size, "%d C", IDLE_CELSIUS), to;
}

static void indent(int depth, const char *by) {
  for (; depth > 0; depth--) fputs(by, stdout);
}

static void print_gpu_xml(int n) {
  char value[256];
  const char *open[8] = {0};
  for (int k = 0, depth = 1; depth; k++) {
    for (; depth > values[k].depth; depth--)
      if (open[depth - 1]) indent(depth, "\t"), printf("</%s>\n", open[depth - 1]);
    if (!values[k].depth) break;
    indent(values[k].depth + 1, "\t");
    if (!values[k].field) {
      printf("<%s>\n", values[k].tag);
      if (!strcmp(values[k].tag, "mig_devices") && fake.gpu[n].mig[0])
        printf("\t\t\t<mig_device>\n\t\t\t\t<index>0</index>\n\t\t\t\t<gpu_instance_id>1</gpu_instance_id>\n"
               "\t\t\t\t<compute_instance_id>0</compute_instance_id>\n\t\t\t</mig_device>\n");
      else if (!strcmp(values[k].tag, "mig_devices"))
        printf("\t\t\tNone\n");
      open[depth = values[k].depth] = values[k].tag;
      depth++;
      continue;
    }
    printf("<%s>", values[k].tag);
    const char *text = shown_value(n, k, value, sizeof value);
    escaped(text + 2 * !strncmp(text, "0x", 2)); /* Only the text format has the prefix. */
    printf("</%s>\n", values[k].tag);
  }
}

static void print_xml(const char *now, const char *cuda, const char *list) {
  char value[256];
  printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n");
  printf("\t<timestamp>%s</timestamp>\n\t<driver_version>%s</driver_version>\n\t<cuda_version>%s</cuda_version>\n", now, fake.release, cuda);
  printf("\t<attached_gpus>%d</attached_gpus>\n", fake.gpus);
  for (int n = 0; n < fake.gpus; n++) {
    if (!is_selected(list, n)) continue;
    printf("\t<gpu id=\"%s\">\n", value_of(n, "pci.bus_id", value, sizeof value));
    print_gpu_xml(n);
    printf("\t</gpu>\n");
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
  for (int n = 0; n < fake.gpus; n++) {
    if (!is_selected(list, n)) continue;
    printf("GPU %s\n", value_of(n, "pci.bus_id", value, sizeof value));
    for (int k = 0; values[k].depth; k++) {
      int last = !strcmp(values[k].tag, "processes");
      if (!values[k].label) continue;
      indent(values[k].depth, "    ");
      if (values[k].field || last)
        printf("%-*s: %s\n", 42 - 4 * values[k].depth, values[k].label, last ? "None" : shown_value(n, k, value, sizeof value));
      else
        printf("%s\n", values[k].label);
    }
    printf("\n");
  }
}

static void print_table(const char *now, const char *cuda, const char *list) {
  char bus[64], mode[64], mig[64], memory[64];
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
    {
      snprintf(memory, sizeof memory, fake.gpu[n].memory ? "0MiB / %6dMiB" : "N/A /  N/A", fake.gpu[n].memory);
      printf("| %3d  %-26.26s %6.6s  |   %-16.16s Off |                  N/A |\n"
             "| N/A  %3dC    P%d             %3dW /  N/A | %22.22s |      0%% %12.12s |\n"
             "|                                         |                        | %20.20s |\n%s",
             n, fake.gpu[n].name, "Off", value_of(n, "pci.bus_id", bus, sizeof bus), IDLE_CELSIUS, IDLE_STATE, IDLE_WATTS, memory,
             compute_mode(n) == 3 ? "E. Process" : plain(n, "compute_mode", mode, sizeof mode), plain(n, "mig.mode.current", mig, sizeof mig), columns);
    }
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
