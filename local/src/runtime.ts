/** How Node runs a process of ours; docs/decisions/0263 has the reasons. */
export interface Runtime {
  /** For V8. */
  readonly flags: readonly string[];
  /** For libuv. */
  readonly env: Readonly<Record<string, string>>;
}

/** Half of them may look names up at once. */
const THREADS = { UV_THREADPOOL_SIZE: '16' };

const OTHERS: Runtime = { flags: ['--max-semi-space-size=8'], env: THREADS };

const GATEWAY: Runtime = {
  flags: ['--max-semi-space-size=4', '--heap-growing-percent=50'],
  env: THREADS,
};

const GATEWAY_SCRIPT = /^services\/gateway\/src\/main\.[jt]s$/;

/**
 * As in a cluster: the image's entry point and environment say the same, and for the gateway the
 * chart (`processes.gateway.command`).
 *
 * @param script main file of the process, from the root.
 */
export function runtimeOf(script: string): Runtime {
  return GATEWAY_SCRIPT.test(script) ? GATEWAY : OTHERS;
}
