/** What the gateway ends a WebSocket to a service with. Others are those of the service. */
export const closeCodes = {
  GOING_AWAY: 1001,
  TOO_MANY_MESSAGES: 1008,
  TRY_AGAIN: 1013,
  /** The connection to the service broke off, or cannot be made. */
  BAD_GATEWAY: 1014,
  /** A message before the first one is answered. */
  TOO_EARLY: 4401,
  /** Clients of GraphQL come again with another token, which they do not after 4401. */
  FORBIDDEN: 4403,
  INIT_TIMEOUT: 4408,
} as const;

const NO_STATUS = 1005;
const ABNORMAL = 1006;
const HIGHEST_OF_PROTOCOL = 1014;
const LOWEST_OF_APPLICATIONS = 3000;

/**
 * Pure. What one side is closed with when the other has ended with a code.
 *
 * @returns undefined: without a code.
 */
export function passedCode(code: number, brokenOff: number): number | undefined {
  if (code === NO_STATUS) return undefined;
  const isSendable = code <= HIGHEST_OF_PROTOCOL || code >= LOWEST_OF_APPLICATIONS;
  return code === ABNORMAL || !isSendable ? brokenOff : code;
}
