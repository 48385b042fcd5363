/* What does a process do to the files of a folder, in which order? Preloaded (LD_PRELOAD), it writes all of it to a file.

   RECORD_DIR   the folder, with its path as the process will spell it
   RECORD_TO    the file; operations.py reads it
   RECORD_FAIL  KIND:N, optional: the Nth write, or sync of a file, fails; KIND is write, sync, short or full

   A record is  kind (1 byte) | file (4) | offset (8) | length (8) | that many bytes  in the machine's own byte order.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_FDS = 1024, MOST_FILES = 4096 };

static char folder[PATH_MAX], names[MOST_FILES][256], failing[16];
static int log_fd = -1, file_of[MOST_FDS], file_count = 1, left_until_failure = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("RECORD_DIR"), *to = getenv("RECORD_TO"), *fail = getenv("RECORD_FAIL");
    if (!where || !to) return;
    strncpy(folder, where, sizeof folder - 1);
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fail && strchr(fail, ':')) {
        strncpy(failing, fail, (size_t)(strchr(fail, ':') - fail));
        left_until_failure = atoi(strchr(fail, ':') + 1);
    }
}

static void put(char kind, int file, int64_t offset, const void *bytes, int64_t length) {
    char head[21];
    head[0] = kind;
    memcpy(head + 1, &file, 4);
    memcpy(head + 5, &offset, 8);
    memcpy(head + 13, &length, 8);
    syscall(SYS_write, log_fd, head, sizeof head);
    if (length) syscall(SYS_write, log_fd, bytes, (size_t)length);
}

/* 0: none of ours. The shared memory of SQLite is made anew after a crash. */
static int known(const char *path) {
    size_t size = strlen(folder), end = strlen(path);
    if (log_fd < 0 || strncmp(path, folder, size) || (path[size] != '/' && path[size] != 0)) return 0;
    if (end > 4 && !strcmp(path + end - 4, "-shm")) return 0;
    const char *name = path[size] ? path + size + 1 : ".";
    for (int file = 1; file < file_count; file++)
        if (!strcmp(names[file], name)) return file;
    if (file_count == MOST_FILES) abort();
    strncpy(names[file_count], name, sizeof names[0] - 1);
    put('N', file_count, 0, name, (int64_t)strlen(name));
    return file_count++;
}

static int fd_file(int fd) { return fd >= 0 && fd < MOST_FDS ? file_of[fd] : 0; }

/* What the workload says of itself is written, too, and never fails. */
static int is_stored(int file) { return file && strcmp(names[file], "promises"); }

static int fails(const char *kind) { return !strcmp(failing, kind) && left_until_failure > 0 && --left_until_failure == 0; }

static int opened(const char *path, int flags, int fd, int is_new) {
    if (fd < 0 || fd >= MOST_FDS) return fd;
    file_of[fd] = known(path);
    if (file_of[fd] && is_new) put('C', file_of[fd], 0, 0, 0);
    if (file_of[fd] && !is_new && (flags & O_TRUNC)) put('T', file_of[fd], 0, 0, 0);
    return fd;
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int is_new = (flags & O_CREAT) && access(path, F_OK);
    return opened(path, flags, (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), is_new);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open64(path, flags, mode);
}

int close(int fd) {
    if (fd >= 0 && fd < MOST_FDS) file_of[fd] = 0;
    return REAL(close)(fd);
}

static ssize_t written(int fd, const void *bytes, size_t size, off64_t offset, int is_placed) {
    int file = fd_file(fd);
    if (is_stored(file) && fails("write")) return errno = EIO, -1;
    if (is_stored(file) && fails("full")) return errno = ENOSPC, -1;
    if (is_stored(file) && size > 1 && fails("short")) size /= 2;
    if (!is_placed && file) offset = lseek64(fd, 0, SEEK_CUR);
    ssize_t count = syscall(is_placed ? SYS_pwrite64 : SYS_write, fd, bytes, size, offset);
    if (file && count > 0) put('W', file, offset, bytes, count);
    return count;
}

ssize_t write(int fd, const void *bytes, size_t size) { return written(fd, bytes, size, 0, 0); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) { return written(fd, bytes, size, at, 1); }
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return written(fd, bytes, size, at, 1); }

static int synced(int fd, long call) {
    int file = fd_file(fd);
    struct stat found;
    /* SQLite does not look at whether a directory was synced. */
    int is_regular = file && !fstat(fd, &found) && S_ISREG(found.st_mode);
    if (is_regular && fails("sync")) return errno = EIO, -1;
    int result = (int)syscall(call, fd);
    if (file && !result) put('S', file, 0, 0, 0);
    return result;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int ftruncate64(int fd, off64_t size) {
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (fd_file(fd) && !result) put('T', fd_file(fd), size, 0, 0);
    return result;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int unlink(const char *path) {
    int file = known(path), result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (file && !result) put('U', file, 0, 0, 0);
    return result;
}
