/* The time of day, so many seconds off as the file CLOCK_FILE says, at any moment: LD_PRELOAD. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t off(void) {
    static volatile int64_t *seconds;
    if (!seconds) {
        const char *name = getenv("CLOCK_FILE");
        int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
        void *found = file < 0 ? MAP_FAILED : mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        if (found == MAP_FAILED) return 0;
        seconds = found;
    }
    return *seconds;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += off();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (into) *into = found.tv_sec;
    return found.tv_sec;
}
