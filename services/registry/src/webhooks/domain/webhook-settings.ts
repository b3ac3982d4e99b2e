/** Where the notifications of a service go (contract 1, "Webhook configuration"). */
export interface WebhookSettings {
  /** `*`: of all services. */
  readonly serviceName: string;
  /** URL by channel. */
  readonly endpoints: ReadonlyMap<string, string>;
  readonly configuredAt: Date;
  /** Where the secret is kept; undefined when there is none. */
  readonly secretRef: { readonly name: string; readonly key: string } | undefined;
}

/** A configuration as it is to become. */
export interface WebhookReplacement {
  /** `*`: of all services. */
  readonly serviceName: string;
  /** URL by channel. */
  readonly endpoints: Readonly<Record<string, string>>;
  /** Undefined: the secret stays as it is. */
  readonly secret: string | undefined;
}

export interface WebhookConfigStore {
  find(serviceName: string): Promise<WebhookSettings | undefined>;
  /**
   * Replaces the endpoints as a whole, and the secret unless it is undefined, in place of exactly
   * the settings that were permitted to be replaced: where somebody else writes first, it asks
   * again about the new settings.
   *
   * @param permit called with what is to be replaced, undefined where there is nothing; what it
   * throws ends the call, nothing written.
   */
  replace(
    replacement: WebhookReplacement,
    permit: (present: WebhookSettings | undefined) => Promise<void>,
  ): Promise<void>;
  /** @returns undefined when the secret that the settings refer to is not there. */
  readSecret(settings: WebhookSettings): Promise<string | undefined>;
}
