import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { ProcessContext } from '@rollcall/platform/process/main.ts';
import type { Dispatcher } from 'undici';
import type { Authenticator } from '../admission/caller.ts';
import type { GatewayConfig } from '../config.ts';
import { type AccessTokens, createAccessTokens } from './access-tokens.ts';
import { type ApiClients, createApiClients } from './api-clients.ts';
import { createAuthenticator } from './authenticator.ts';
import { type BackendIdentity, createBackendIdentity } from './backend-identity.ts';
import { createExternalIssuers } from './external-issuers.ts';
import { createIdentityExchange, type IdentityExchange } from './identity-exchange.ts';
import { createKeyStore, type KeyStore } from './key-store.ts';

interface IdentityDeps {
  readonly connection: KubeConnection;
  /** Of the ApiClients. */
  readonly namespace: string;
  readonly dispatcher: Dispatcher;
}

/** Who calls, and how services know. */
export interface GatewayIdentity {
  readonly keys: KeyStore;
  readonly clients: ApiClients;
  readonly tokens: AccessTokens;
  readonly authenticator: Authenticator;
  readonly backend: BackendIdentity;
  readonly exchange: IdentityExchange;
  /** In the order in which they are started. */
  readonly actors: readonly Actor[];
}

const TOLERANCE_SECONDS = 5;
const CHECKED_TOKENS = { tokens: 20_000, characters: 16 * 1024 * 1024 };
/** Longer than anyone may keep a copy of the key set: routes/keys.ts. */
const PUBLISH_AHEAD_MS = 900_000;

export function createIdentity(
  { config, clock, log }: ProcessContext<GatewayConfig>,
  { connection, namespace, dispatcher }: IdentityDeps,
): GatewayIdentity {
  const { token, externalIssuers: issuers } = config;
  const { secretName, refreshMs, rotateAfterMs } = config.keys;
  const verifyAfterMs = (token.lifetimeSeconds + TOLERANCE_SECONDS) * 1000;
  const keys = createKeyStore({
    connection,
    namespace: config.keys.namespace ?? namespace,
    secretName,
    policy: { rotateAfterMs, publishAheadMs: PUBLISH_AHEAD_MS, verifyAfterMs },
    refreshMs,
    clock,
    log,
  });
  const fingerprintKey = (): Buffer => keys.fingerprintKey();
  const clients = createApiClients({ connection, namespace, fingerprintKey, clock, log });
  const { issuer, audience, lifetimeSeconds } = token;
  const tolerance = { toleranceSeconds: TOLERANCE_SECONDS };
  const tokens = createAccessTokens({ issuer, audience, lifetimeSeconds, keys, clients, clock, ...tolerance });
  const external = createExternalIssuers({ issuers, clock, dispatcher, ...tolerance });
  const authenticator = createAuthenticator({ own: tokens, external, clock, capacity: CHECKED_TOKENS });
  const backend = createBackendIdentity({ keys, issuer, clock });
  return {
    keys,
    clients,
    tokens,
    authenticator,
    backend,
    exchange: createIdentityExchange({ keys, clients, authenticator, backend, issuer, clock }),
    actors: [keys.actor, clients.actor],
  };
}
