import { cursorAfter } from '../../common/limit.ts';
import { type Rendered, rendered } from '../../http/rendered.ts';
import { type Directory, type DirectoryEntry, EVERYTHING } from '../domain/directory.ts';
import type { Registration } from '../domain/registration.ts';
import type { Page } from '../domain/service-filter.ts';
import { registrationRecord } from './registration-schemas.ts';

/** A heartbeat alone does not make it another answer: those who ask again would get all anew. */
export function renderRegistration(registration: Registration, lastHeartbeat: Date | undefined): Rendered {
  const record = registrationRecord(registration, lastHeartbeat);
  return rendered(JSON.stringify(record), JSON.stringify(registrationRecord(registration)));
}

/** As {@link renderRegistration}, of instances. */
export function renderInstances(answer: object): Rendered {
  return rendered(Buffer.from(JSON.stringify(answer)), JSON.stringify(answer, withoutHeartbeats));
}

function withoutHeartbeats(name: string, value: unknown): unknown {
  return name === 'last_heartbeat' ? undefined : value;
}

/** The answer to a list of these entries. */
export function renderList(entries: Iterable<DirectoryEntry<Rendered>>): Rendered {
  const all = [...entries];
  return renderPage({ entries: all, total: all.length, next: undefined });
}

/** One page of a list, and how to get the next. */
export function renderPage({ entries, total, next }: Page<DirectoryEntry<Rendered>>): Rendered {
  const answers = entries.map((entry) => entry.rendered);
  const end = `"total":${total}${next === undefined ? '' : `,"next_cursor":"${cursorAfter(next)}"`}}`;
  const body = `{"services":[${answers.map((answer) => answer.body).join(',')}],${end}`;
  return rendered(Buffer.from(body), answers.map(({ etag }) => etag).join('') + end);
}

/** The list of everything, made again only when something has changed, heartbeats included. */
export function cachedList(directory: Directory<Rendered>): () => Rendered {
  let revision = -1;
  let list: Rendered | undefined;
  return () => {
    if (list === undefined || revision !== directory.revision) {
      revision = directory.revision;
      list = renderList(directory.matching(EVERYTHING));
    }
    return list;
  };
}
