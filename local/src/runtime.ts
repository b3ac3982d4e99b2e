/**
 * How Node runs a process of ours, as in a cluster: the image's environment says the same.
 * docs/decisions/0263, 0272 and 0455 have the reasons.
 */
export const runtime = {
  /** For V8, in MiB. */
  NODE_OPTIONS: '--max-semi-space-size=8 --max-old-space-size=1536',
  /** For libuv: half of them may look names up at once. */
  UV_THREADPOOL_SIZE: '16',
} as const;

/** For federation, which composes in a thread. The chart says the same. */
export const sharedArenas = {
  /** For glibc: threads share what they free. */
  MALLOC_ARENA_MAX: '2',
} as const;

/** For communication and payment, which hold little. The chart says the same. */
export const smallHeap = {
  /** V8 collects sooner. */
  NODE_OPTIONS: '--max-semi-space-size=4 --max-old-space-size=384',
  ...sharedArenas,
} as const;
