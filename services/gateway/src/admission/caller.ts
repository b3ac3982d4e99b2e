/** How much a caller may ask for (contract 3, "Limits"). */
export type Tier = 'premium' | 'standard' | 'free';

/** Who makes a request, as proven by its access token. */
export interface Caller {
  /** The token's `sub`: the client's id, or what an external issuer calls its subject. */
  readonly subject: string;
  readonly tier: Tier;
  readonly scopes: ReadonlySet<string>;
  /** When the proof ends, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
  /** Of the secret of the client, with which the proof ends; absent: another issuer says who it is. */
  readonly generation?: string;
}

/** A caller, with the token that proves who it is. */
export interface Holder {
  readonly caller: Caller;
  readonly token: string;
}

/** Checks access tokens. */
export interface Authenticator {
  /**
   * @param token what follows `Bearer `.
   * @returns at once where the token was checked not long ago.
   * @throws GatewayError INVALID_TOKEN.
   */
  authenticate(token: string): Caller | Promise<Caller>;
  /**
   * Whether a token that was authenticated before still holds: long-lived connections ask from time
   * to time.
   */
  stillHolds(token: string): boolean;
}
