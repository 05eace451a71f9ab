/* Lets ranks that wait for messages sleep, where many of them share a few cores.
 *
 * MPI libraries ask "is there anything?" in a loop, without waiting.  After a streak of empty
 * answers this waits in the kernel instead, for a short time, on the same descriptors: data wakes
 * it at once.  A program that asks now and then between computations is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

enum { STREAK = 20, APART_NS = 200 * 1000 };

static __thread int streak;
static __thread long long last_ns;

static struct timespec longest(void) {
    const char *text = getenv("COLLWISE_LAB_QUIET_US");
    long us = text ? atol(text) : 1000;
    return (struct timespec){us / 1000000, us % 1000000 * 1000};
}

static int worth_waiting(int found) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    streak = found == 0 && now_ns - last_ns < APART_NS ? streak + 1 : 0;
    last_ns = now_ns;
    return streak >= STREAK;
}

static int wait_on(struct pollfd *descriptors, nfds_t count) {
    struct timespec limit = longest(), now;
    int found = ppoll(descriptors, count, &limit, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    last_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    if (found > 0) streak = 0;
    return found < 0 ? 0 : found;
}

int epoll_wait(int descriptor, struct epoll_event *events, int count, int timeout) {
    static int (*real)(int, struct epoll_event *, int, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    int found = real(descriptor, events, count, timeout);
    if (timeout != 0 || !worth_waiting(found)) return found;
    struct pollfd one = {descriptor, POLLIN, 0};
    return wait_on(&one, 1) ? real(descriptor, events, count, 0) : 0;
}

int poll(struct pollfd *descriptors, nfds_t count, int timeout) {
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "poll");
    int found = real(descriptors, count, timeout);
    if (timeout != 0 || count == 0 || !worth_waiting(found)) return found;
    return wait_on(descriptors, count);
}
