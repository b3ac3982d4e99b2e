/**
 * How Node runs a process of ours, as in a cluster: the image's entry point and environment say the
 * same. docs/decisions/0263 has the reasons.
 */
export const runtime = {
  /** For V8. */
  flags: ['--max-semi-space-size=8'],
  /** For libuv: half of them may look names up at once. */
  env: { UV_THREADPOOL_SIZE: '16' },
} as const;
