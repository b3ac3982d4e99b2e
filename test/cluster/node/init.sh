#!/bin/bash
# The first process of the node: gives it mounts, a host name and a network of its own, then waits and reaps.
# Arguments: state directory, node's name, its address, range of its Services, and a directory whose usr/ is laid over /usr, or ''.
set -eu
state=$1 name=$2 address=$3 services=$4 packages=$5

mount --make-rshared /

# /sys must show the new network namespace. The cgroups below it are carried over; unless the copy is private, unmounting it empties
# the new place too.
mkdir -p "$state/cgroup"
mount --rbind /sys/fs/cgroup "$state/cgroup"
mount --make-rprivate "$state/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$state/cgroup" /sys/fs/cgroup
umount -l "$state/cgroup"

mount -t tmpfs -o mode=755 node-run /run
mkdir -p /run/lock /run/netns /run/containerd
# What is written below /var goes to the state directory. Layers of images cannot lie on an overlay, so two places are bound.
mkdir -p "$state"/{var,var-work,kubelet,containerd}
mount -t overlay -o "lowerdir=/var,upperdir=$state/var,workdir=$state/var-work" node-var /var
for directory in kubelet containerd; do
  mkdir -p "/var/lib/$directory"
  mount --bind "$state/$directory" "/var/lib/$directory"
done
mount --make-rshared /var/lib/kubelet
[ -z "$packages" ] || mount -t overlay -o "lowerdir=$packages/usr:/usr" node-usr /usr

printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" >"$state/hosts"
: >"$state/resolv.conf"
mount --bind "$state/hosts" /etc/hosts
mount --bind "$state/resolv.conf" "$(readlink -f /etc/resolv.conf)"
hostname "$name"

# The kubelet writes these for the whole kernel: it gets copies.
mkdir -p "$state/sysctl"
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  copy="$state/sysctl/${setting//\//.}"
  cat "/proc/sys/$setting" >"$copy"
  mount --bind "$copy" "/proc/sys/$setting"
done

ip link set lo up
until [ -e /sys/class/net/eth0 ]; do sleep 0.02; done
ip address add "$address/30" dev eth0
ip link set eth0 up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
# Without this limit off, some attempts to reach the outside would time out instead of failing.
echo 0 >/proc/sys/net/ipv4/icmp_ratelimit
# A connection whose process is gone holds the namespace as long as it tries to say goodbye, which is minutes when the other end is gone too.
echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries
# What runs on the node itself can dial a Service only where some route covers its address; a bridge without ports swallows the rest.
ip link add svc0 type bridge
ip link set svc0 up
ip route add "$services" dev svc0 src "$address"

echo ready >"$state/ready"
while :; do
  sleep 86400 &
  wait $! || :
done
