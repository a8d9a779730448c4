/* Starts the program of Linux that has this file's name, from Wine: converts paths, and passes its output on. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

typedef int (*unix_spawn)(char *const argv[], int wait);

static char command[1 << 20];

/* Appends an argument in quotes. A path has no drive, and slashes. */
static void append(const char *text) {
  char *to = command + strlen(command);
  const char *directory = strncmp(text, "-I", 2) ? text : text + 2;
  const int is_path = (directory[0] | 32) == 'z' && directory[1] == ':';
  to += sprintf(to, " '%.*s", (int)(directory - text), text);
  for (text = is_path ? directory + 2 : directory; *text; text++) *to++ = *text == '\\' ? '/' : *text;
  strcpy(to, "'");
}

static void print(const char *name, FILE *to) {
  FILE *from = fopen(name, "rb");
  for (int c; from && (c = fgetc(from)) != EOF;) fputc(c, to);
  if (from) fclose(from);
  remove(name);
}

int main(int count, char **arguments) {
  char *shell[] = {"/bin/sh", "-c", command, 0}, out[64], err[64], directory[MAX_PATH], own[MAX_PATH];
  const unsigned long id = GetCurrentProcessId();
  unix_spawn spawn = (unix_spawn)GetProcAddress(GetModuleHandleA("ntdll"), "__wine_unix_spawnvp");
  if (!spawn || !GetCurrentDirectoryA(sizeof directory, directory) || !GetModuleFileNameA(0, own, sizeof own)) return 99;
  *strrchr(own, '.') = 0;
  sprintf(out, "compiler-%lu.out", id);
  sprintf(err, "compiler-%lu.err", id);
  strcpy(command, "cd");
  append(directory);
  strcat(command, " && exec");
  append(strrchr(own, '\\') + 1);
  for (int n = 1; n < count; n++) append(arguments[n]);
  sprintf(command + strlen(command), " >%s 2>%s </dev/null", out, err);
  const int status = spawn(shell, 1);
  print(out, stdout);
  print(err, stderr);
  return status;
}
