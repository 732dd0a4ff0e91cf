/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kubelet and the container runtimes say in the names of their cgroups. Both drivers:
 *
 *   systemd   kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_ab.slice/cri-containerd-ID.scope
 *   cgroupfs  kubepods/burstable/pod1234-ab/ID
 *
 * A pod of the guaranteed class sits directly under kubepods. With --cgroup-root the whole may hang deeper, and with the systemd driver
 * its names then start with those of the slices above (kubelet-kubepods-...). Containers without a pod are
 * docker-ID.scope, libpod-ID.scope and so on, or docker/ID. */

#include <ctype.h>

#include "policies/match.h"

#define CONTAINER_ID_LENGTH 64 /* all runtimes: hex of 32 random bytes */

/* A component of a path. */
typedef struct Part {
        const char *s;
        size_t n;
} Part;

static bool part_is(Part p, const char *s) {
        return strlen(s) == p.n && memcmp(p.s, s, p.n) == 0;
}

static bool part_starts(Part p, const char *s) {
        return strlen(s) <= p.n && memcmp(p.s, s, strlen(s)) == 0;
}

static bool part_cut_end(Part *p, const char *s) {
        size_t n = strlen(s);

        if (p->n < n || memcmp(p->s + p->n - n, s, n) != 0)
                return false;
        p->n -= n;
        return true;
}

static Part part_after(Part p, size_t n) {
        return (Part) { p.s + n, p.n - n };
}

static bool copy_uid(Part p, PodFacts *ret) {
        if (p.n == 0 || p.n >= sizeof(ret->pod_uid))
                return false;
        for (size_t i = 0; i < p.n; i++) {
                if (!isxdigit((unsigned char) p.s[i]) && p.s[i] != '-' && p.s[i] != '_')
                        return false;
                ret->pod_uid[i] = p.s[i] == '_' ? '-' : p.s[i];
        }
        ret->pod_uid[p.n] = 0;
        return true;
}

static bool is_container_id(Part p) {
        if (p.n != CONTAINER_ID_LENGTH)
                return false;
        for (size_t i = 0; i < p.n; i++)
                if (!isdigit((unsigned char) p.s[i]) && !(p.s[i] >= 'a' && p.s[i] <= 'f'))
                        return false;
        return true;
}

/* "ID" where a bare id may stand, or "RUNTIME-ID", with or without ".scope". conmon's own group carries the container's id too,
 * but only the monitor is in it. */
static bool copy_container(Part p, bool bare, PodFacts *ret) {
        Part id;

        (void) part_cut_end(&p, ".scope");
        if (p.n < CONTAINER_ID_LENGTH)
                return false;
        id = part_after(p, p.n - CONTAINER_ID_LENGTH);
        if (!is_container_id(id))
                return false;
        p.n -= id.n;
        if (p.n == 0 ? !bare : !part_cut_end(&p, "-") || p.n == 0 || part_cut_end(&p, "-conmon"))
                return false;
        memcpy(ret->container_id, id.s, id.n);
        ret->container_id[id.n] = 0;
        return true;
}

/* Finds "kubepods" as a word of its own in the name of a slice: those of the slices above come first. Returns what follows it. */
static bool after_kubepods(Part p, Part *ret) {
        const size_t n = strlen("kubepods");

        for (size_t i = 0; i + n <= p.n; i++)
                if (memcmp(p.s + i, "kubepods", n) == 0 && (i == 0 || p.s[i - 1] == '-') && (i + n == p.n || p.s[i + n] == '-')) {
                        *ret = part_after(p, i + n);
                        return true;
                }
        return false;
}

/* Reads a group of kubelet's own tree. Returns false when it is none. */
static bool read_kubepods(Part p, PodFacts *ret) {
        PodFacts v = *ret;

        if (!part_cut_end(&p, ".slice")) /* the cgroupfs driver, whose next levels say the rest */
                return part_is(p, "kubepods");
        if (!after_kubepods(p, &p))
                return false;
        if (part_starts(p, "-burstable") || part_starts(p, "-besteffort")) {
                (void) strcpy(v.qos, p.s[2] == 'u' ? "burstable" : "besteffort");
                p = part_after(p, 1 + strlen(v.qos));
        }
        if (p.n > 0 && !(part_starts(p, "-pod") && copy_uid(part_after(p, strlen("-pod")), &v)))
                return false;
        *ret = v;
        return true;
}

/* Goes down the path. *ret_node: the path is in kubelet's tree, but above its pods. */
static bool read_path(const char *cgroup, PodFacts *ret, bool *ret_node) {
        Part previous = { "", 0 };
        bool inside = false, own = false;

        *ret = (PodFacts) {};
        for (const char *p = cgroup; *p;) {
                Part part;

                p += strspn(p, "/");
                part = (Part) { p, strcspn(p, "/") };
                if (part.n == 0)
                        break;
                p += part.n;
                own = false;
                if (ret->container_id[0]) /* inside a container: its own business */
                        break;
                if (ret->pod_uid[0])
                        own = copy_container(part, true, ret);
                else if (!inside) {
                        inside = read_kubepods(part, ret);
                        own = ret->pod_uid[0];
                        if (!inside)
                                own = copy_container(part, part_is(previous, "docker") || part_is(previous, "libpod_parent"), ret);
                } else if (read_kubepods(part, ret))
                        own = ret->pod_uid[0];
                else if (!ret->qos[0] && (part_is(part, "burstable") || part_is(part, "besteffort")))
                        (void) snprintf(ret->qos, sizeof(ret->qos), "%.*s", (int) part.n, part.s);
                else if (part_starts(part, "pod"))
                        own = copy_uid(part_after(part, strlen("pod")), ret);
                previous = part;
        }
        if (ret->pod_uid[0] && !ret->qos[0])
                (void) strcpy(ret->qos, "guaranteed");
        *ret_node = inside && !ret->pod_uid[0];
        return own;
}

bool pod_facts_from_path(const char *cgroup, PodFacts *ret) {
        bool node;

        return read_path(cgroup, ret, &node);
}

bool path_is_kubernetes_node(const char *cgroup) {
        PodFacts facts;
        bool node;

        (void) read_path(cgroup, &facts, &node);
        cgroup += strspn(cgroup, "/");
        return node || ((startswith(cgroup, "kubepods") || startswith(cgroup, "kubelet")) && !facts.pod_uid[0] && !facts.container_id[0]);
}
