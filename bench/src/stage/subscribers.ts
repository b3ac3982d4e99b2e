import { createApiClient, tokenFrom } from './api-clients.ts';
import type { RollcallSubject, Stage } from './stage.ts';

export const SUBSCRIBERS = 5000;
/** A subject may have 1,000 connections. */
const CLIENTS = 6;

/** A registry, a gateway before it, and tokens with which its registrations may be followed. */
export interface Followed {
  readonly registry: RollcallSubject;
  readonly gateway: RollcallSubject;
  readonly tokens: readonly string[];
}

/** @param namespace is made. */
export async function startFollowed(
  stage: Stage,
  namespace: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Followed> {
  await stage.createNamespace(namespace);
  const ids = Array.from({ length: CLIENTS }, (_, index) => `follower-${index}`);
  for (const id of ids) await createApiClient(stage.kube, { namespace, id, scopes: ['registrations:read'] });
  const registry = await stage.startRegistry({ namespace });
  const gateway = await stage.startGateway({
    namespace,
    settings: {
      ROLLCALL_REGISTRY_URLS: `http://127.0.0.1:${registry.port}`,
      ROLLCALL_ACCESS_LOG: 'off',
      ROLLCALL_LIMIT_PREMIUM: '1000000',
      ...settings,
    },
  });
  const tokens: string[] = [];
  for (const id of ids) tokens.push(await tokenFrom(gateway, id));
  return { registry, gateway, tokens };
}
