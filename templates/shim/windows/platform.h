/* The functions of Windows that the shim calls, all in kernel32. They are declared here, so that
 * the shim compiles without an SDK.  */
#ifndef CUDAGUARD_PLATFORM_H
#define CUDAGUARD_PLATFORM_H

#include "../attributes.h"

#include <stddef.h>
#include <stdint.h>

#define PATH_MAX 4096
#define PIPE_BUF 4096

/* Compilers call these for copies of structures; every C runtime has them. */
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);

typedef void *handle;
typedef uint16_t wide; /* UTF-16 */

#define SYSTEM __declspec(dllimport)
SYSTEM handle GetModuleHandleW(const wide *name);
SYSTEM uint32_t GetModuleFileNameW(handle module, wide *path, uint32_t size);
SYSTEM handle LoadLibraryExW(const wide *name, handle unused, uint32_t flags);
SYSTEM int FreeLibrary(handle module);
SYSTEM handle FindResourceW(handle module, const wide *name, const wide *type);
SYSTEM handle LoadResource(handle module, handle resource);
SYSTEM void *LockResource(handle data);
SYSTEM uint32_t SizeofResource(handle module, handle resource);
SYSTEM uint32_t GetLastError(void);
SYSTEM void SetLastError(uint32_t error);
SYSTEM uint32_t GetEnvironmentVariableW(const wide *name, wide *value, uint32_t size);
SYSTEM uint32_t GetSystemDirectoryW(wide *path, uint32_t size);
SYSTEM uint32_t GetCurrentDirectoryW(uint32_t size, wide *path);
SYSTEM uint32_t GetCurrentProcessId(void);
SYSTEM handle GetCurrentProcess(void);
SYSTEM int GetProcessTimes(handle process, uint64_t *start, uint64_t *end, uint64_t *kernel,
                           uint64_t *user);
SYSTEM int TerminateProcess(handle process, uint32_t status);
SYSTEM handle GetStdHandle(uint32_t which);
SYSTEM int WriteFile(handle file, const void *from, uint32_t size, uint32_t *written, void *none);
SYSTEM handle CreateFileW(const wide *path, uint32_t access, uint32_t share, void *security,
                          uint32_t how, uint32_t flags, handle none);
SYSTEM int CloseHandle(handle file);
SYSTEM int GetComputerNameW(wide *name, uint32_t *size);
SYSTEM int WideCharToMultiByte(uint32_t page, uint32_t flags, const wide *from, int length,
                               char *to, int size, const char *unknown, int *used);
SYSTEM int MultiByteToWideChar(uint32_t page, uint32_t flags, const char *from, int length,
                               wide *to, int size);
SYSTEM void *VirtualAlloc(void *at, size_t size, uint32_t type, uint32_t protection);
SYSTEM int VirtualFree(void *at, size_t size, uint32_t type);
SYSTEM uint32_t QueryDosDeviceW(const wide *drive, wide *path, uint32_t size);
SYSTEM uint32_t K32GetMappedFileNameW(handle process, void *at, wide *path, uint32_t size);
SYSTEM int K32EnumProcessModules(handle process, handle *modules, uint32_t size, uint32_t *needed);

#define INVALID_HANDLE ((handle)(intptr_t)-1)

enum {
  UTF_8 = 65001,
  /* LoadLibraryEx: maps the file that the loader would pick, as an image, and runs none of its
     code. */
  AS_DATA = 0x22,
  NO_FILE = 2,
  NO_PATH = 3,
  NO_MODULE = 126,
  STDERR_FILENO = -12, /* STD_ERROR_HANDLE */
  APPEND_ACCESS = 4,
  SHARE_ALL = 7,
  ANY_FILE = 4, /* OPEN_ALWAYS */
  COMMIT = 0x3000,
  RELEASE = 0x8000,
  READ_AND_WRITE = 4
};

/* A module of this process. `name` is empty for the program. */
struct loaded_file {
  const unsigned char *base;
  const char *name;
};

#endif
