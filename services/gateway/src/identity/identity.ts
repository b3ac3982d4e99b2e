import type { Clock } from '@rollcall/platform/clock.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Dispatcher } from 'undici';
import type { Authenticator } from '../admission/caller.ts';
import type { KeysConfig } from '../config.ts';
import { type AccessTokens, createAccessTokens } from './access-tokens.ts';
import { type ApiClients, createApiClients } from './api-clients.ts';
import { createAuthenticator } from './authenticator.ts';
import { type BackendIdentity, createBackendIdentity } from './backend-identity.ts';
import { createExternalIssuers, type ExternalIssuer } from './external-issuers.ts';
import { createKeyStore, type KeyStore } from './key-store.ts';

export interface IdentityDeps {
  readonly connection: KubeConnection;
  /** Of the ApiClients. */
  readonly namespace: string;
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
  readonly log: Logger;
  readonly keys: KeysConfig;
  readonly token: { readonly issuer: string; readonly audience: string; readonly lifetimeSeconds: number };
  readonly externalIssuers: readonly ExternalIssuer[];
}

/** Who calls, and how services know. */
export interface GatewayIdentity {
  readonly keys: KeyStore;
  readonly clients: ApiClients;
  readonly tokens: AccessTokens;
  readonly authenticator: Authenticator;
  readonly backend: BackendIdentity;
  /** In the order in which they are started. */
  readonly actors: readonly Actor[];
}

const TOLERANCE_SECONDS = 5;
const CHECKED_TOKENS = { tokens: 20_000, characters: 16 * 1024 * 1024 };
/** Longer than anyone may keep a copy of the key set: routes/keys.ts. */
const PUBLISH_AHEAD_MS = 900_000;

export function createIdentity(deps: IdentityDeps): GatewayIdentity {
  const { connection, token, externalIssuers: issuers, clock, log, dispatcher } = deps;
  const verifyAfterMs = (token.lifetimeSeconds + TOLERANCE_SECONDS) * 1000;
  const policy = { rotateAfterMs: deps.keys.rotateAfterMs, publishAheadMs: PUBLISH_AHEAD_MS, verifyAfterMs };
  const { secretName, refreshMs, namespace = deps.namespace } = deps.keys;
  const keys = createKeyStore({ connection, namespace, secretName, policy, refreshMs, clock, log });
  const clients = createApiClients({
    connection,
    namespace: deps.namespace,
    fingerprintKey: () => keys.fingerprintKey(),
    clock,
    log,
  });
  const tokens = createAccessTokens({
    issuer: token.issuer,
    audience: token.audience,
    lifetimeSeconds: token.lifetimeSeconds,
    keys,
    clients,
    clock,
    toleranceSeconds: TOLERANCE_SECONDS,
  });
  const external = createExternalIssuers({ issuers, clock, dispatcher, toleranceSeconds: TOLERANCE_SECONDS });
  return {
    keys,
    clients,
    tokens,
    authenticator: createAuthenticator({ own: tokens, external, clock, capacity: CHECKED_TOKENS }),
    backend: createBackendIdentity({ keys, issuer: token.issuer, clock }),
    actors: [keys.actor, clients.actor],
  };
}
