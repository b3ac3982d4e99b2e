import { type ConnectionOptions, createTransport } from '@rollcall/client/transport.ts';
import { watchedJobs, watchedServices, watchList } from '@rollcall/client/watch.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { ChannelSource } from './channel-source.ts';
import { follow } from './follow.ts';
import { createJobsTopic, jobsSource } from './jobs.ts';
import { createRegistrationsTopic, registrationsSource } from './registrations.ts';

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
  const jobs = createJobsTopic();
  const stopping = new AbortController();
  const { signal } = stopping;
  let following: Promise<unknown> | undefined;

  return {
    sources: [registrationsSource(registrations), jobsSource(jobs)],
    start() {
      following ??= Promise.all([
        follow(
          {
            name: 'registrations',
            topic: registrations,
            watch: (options) => watchList(transport, watchedServices, options),
            log,
          },
          signal,
        ),
        follow(
          { name: 'jobs', topic: jobs, watch: (options) => watchList(transport, watchedJobs, options), log },
          signal,
        ),
      ]);
    },
    async stop() {
      stopping.abort();
      await following;
    },
  };
}
