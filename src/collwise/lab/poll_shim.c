/* Lets ranks sleep while they wait for messages, where many of them share a few cores.
 *
 * MPI libraries poll their sockets in a loop, without waiting.  After a streak of empty polls this
 * library waits in the kernel instead, for a short time, on the same descriptors; data ends the
 * wait at once.  A program that polls now and then between computations never has such a streak.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

enum { STREAK = 5, APART_NS = 200 * 1000 };

static __thread int streak;
static __thread long long last_ns;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int worth_waiting(int ready) {
    long long now = now_ns();
    streak = ready == 0 && now - last_ns < APART_NS ? streak + 1 : 0;
    last_ns = now;
    return streak >= STREAK;
}

static int wait_on(struct pollfd *descriptors, nfds_t count) {
    const char *text = getenv("COLLWISE_LAB_POLL_US");
    long us = text ? atol(text) : 1000;
    struct timespec longest = {us / 1000000, us % 1000000 * 1000};
    int ready = ppoll(descriptors, count, &longest, NULL);
    last_ns = now_ns();
    if (ready > 0) streak = 0;
    return ready < 0 ? 0 : ready;
}

int epoll_wait(int descriptor, struct epoll_event *events, int count, int timeout) {
    static int (*real)(int, struct epoll_event *, int, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    int ready = real(descriptor, events, count, timeout);
    if (timeout != 0 || !worth_waiting(ready)) return ready;
    struct pollfd one = {descriptor, POLLIN, 0};
    return wait_on(&one, 1) ? real(descriptor, events, count, 0) : 0;
}

int poll(struct pollfd *descriptors, nfds_t count, int timeout) {
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "poll");
    int ready = real(descriptors, count, timeout);
    if (timeout != 0 || count == 0 || !worth_waiting(ready)) return ready;
    return wait_on(descriptors, count);
}
