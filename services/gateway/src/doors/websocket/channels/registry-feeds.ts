import { type ConnectionOptions, createTransport } from '@rollcall/client/transport.ts';
import { type Watched, watchedInstances, watchedJobs, watchedServices, watchList } from '@rollcall/client/watch.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { ChannelSource } from './channel-source.ts';
import { type FollowDeps, follow } from './follow.ts';
import { createJobsTopic, jobsSource } from './jobs.ts';
import {
  createInstancesTopic,
  createRegistrationsTopic,
  instancesSource,
  registrationsSource,
} from './registrations.ts';
import type { Topic } from './topic.ts';

export interface RegistryFeedsDeps {
  readonly registry: ConnectionOptions;
  readonly log: Logger;
}

/** The channels that the registry feeds: one stream each, however many follow them here. */
export interface RegistryFeeds {
  readonly sources: readonly ChannelSource[];
  start(): void;
  stop(): Promise<void>;
}

export function createRegistryFeeds({ registry, log }: RegistryFeedsDeps): RegistryFeeds {
  const transport = createTransport(registry);
  const registrations = createRegistrationsTopic();
  const instances = createInstancesTopic();
  const jobs = createJobsTopic();
  const stopping = new AbortController();
  const { signal } = stopping;
  const following = new Map<object, Promise<void>>();

  function begin<Item extends object, Gone extends string>(
    name: string,
    topic: Topic<Item, Gone>,
    watched: Watched<Item, Gone>,
  ): void {
    if (following.has(topic) || signal.aborted) return;
    const watch: FollowDeps<Item, Gone>['watch'] = (options) => watchList(transport, watched, options);
    following.set(topic, follow({ name, topic, watch, log }, signal));
  }

  /** Nothing is held for a channel that nobody asks for: requests find their way by a list of its own. */
  const instancesOnDemand: ChannelSource = {
    ...instancesSource(instances),
    subscribe(subscription, subscriber) {
      begin('instances', instances, watchedInstances);
      return instances.subscribe(subscription, subscriber);
    },
  };

  return {
    sources: [registrationsSource(registrations), instancesOnDemand, jobsSource(jobs)],
    start() {
      begin('registrations', registrations, watchedServices);
      begin('jobs', jobs, watchedJobs);
    },
    async stop() {
      stopping.abort();
      await Promise.all(following.values());
    },
  };
}
