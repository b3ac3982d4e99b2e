import { objectNameFor } from '@rollcall/crds/kinds.ts';
import type { WebhookConfig } from '@rollcall/crds/types.gen.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { ALL_SERVICES } from '../../webhooks/domain/webhook-configs.ts';
import type { WebhookConfigStore } from '../../webhooks/domain/webhook-settings.ts';
import { chooseConfig, toSettings } from '../../webhooks/store/webhook-configs.ts';
import type { ChannelDirectory } from '../domain/channel-directory.ts';

export interface ChannelDirectoryDeps {
  /** Started and stopped by somebody else. */
  readonly informer: Pick<Informer<WebhookConfig>, 'store' | 'connectivity'>;
  readonly namespace: string;
  readonly configs: Pick<WebhookConfigStore, 'find'>;
}

/**
 * Reads the copy that a watch keeps current; where the watch is interrupted, asks the API server.
 * What lets calls through must never be read from here: a copy may be behind.
 */
export function createChannelDirectory({ informer, namespace, configs }: ChannelDirectoryDeps): ChannelDirectory {
  function copyOf(serviceName: string): WebhookConfig | undefined {
    const canonical = informer.store.get(`${namespace}/${objectNameFor(serviceName)}`);
    if (canonical?.spec.serviceName === serviceName) return canonical;
    return chooseConfig([...informer.store.values()], serviceName);
  }

  async function endpointsOf(serviceName: string, isFresh: boolean): Promise<ReadonlyMap<string, string>> {
    if (isFresh || informer.connectivity() !== 'connected') {
      return (await configs.find(serviceName))?.endpoints ?? new Map();
    }
    const config = copyOf(serviceName);
    return config === undefined ? new Map() : toSettings(config).endpoints;
  }

  return {
    async find(serviceName, isFresh) {
      const own = await endpointsOf(serviceName, isFresh);
      return own.size === 0 ? endpointsOf(ALL_SERVICES, isFresh) : own;
    },
  };
}
