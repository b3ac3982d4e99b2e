import type { InstanceFacts } from './registry-types.ts';

/**
 * Where this process runs, as `ROLLCALL_ZONE` says.
 *
 * @param env of the process; browsers have none.
 */
export function ownZone(
  env: Readonly<Record<string, string | undefined>> = globalThis.process?.env ?? {},
): Pick<InstanceFacts, 'zone'> {
  const { ROLLCALL_ZONE: zone = '' } = env;
  return zone === '' ? {} : { zone };
}
