import { type Rendered, rendered } from '../../http/rendered.ts';
import type { Directory, DirectoryEntry } from '../domain/directory.ts';
import type { Registration } from '../domain/registration.ts';
import { registrationRecord } from './registration-schemas.ts';

export function renderRegistration(registration: Registration, lastHeartbeat: Date | undefined): Rendered {
  return rendered(JSON.stringify(registrationRecord(registration, lastHeartbeat)));
}

/** The answer to a list of these entries. */
export function renderList(entries: Iterable<DirectoryEntry<Rendered>>): Rendered {
  const bodies = Array.from(entries, ({ rendered: { body } }) => body);
  return rendered(Buffer.from(`{"services":[${bodies.join(',')}],"total":${bodies.length}}`));
}

/** The list of everything, made again only when something has changed, heartbeats included. */
export function cachedList(directory: Directory<Rendered>): () => Rendered {
  let revision = -1;
  let list: Rendered | undefined;
  return () => {
    if (list === undefined || revision !== directory.revision) {
      revision = directory.revision;
      list = renderList(directory.entries());
    }
    return list;
  };
}
