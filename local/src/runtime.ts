/**
 * How Node runs a process of ours, as in a cluster: the image's entry point and environment say the
 * same. docs/decisions/0263 and 0272 have the reasons.
 */
export const runtime = {
  /** For V8, in MiB. */
  flags: ['--max-semi-space-size=8', '--max-old-space-size=1536'],
  /** For libuv: half of them may look names up at once. */
  env: { UV_THREADPOOL_SIZE: '16' },
} as const;
