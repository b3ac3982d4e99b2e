import { randomBytes } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { noSuch } from './errors.ts';
import type { ApiList, LineItem, StripeObject } from './objects.ts';

type ObjectName = StripeObject['object'];
type ObjectOf<Name extends ObjectName> = Extract<StripeObject, { readonly object: Name }>;

/** Which part of a list is asked for; all of it text, as it came. */
export interface ListQuery {
  readonly limit?: string;
  readonly starting_after?: string;
  readonly created?: { readonly gt?: string; readonly gte?: string; readonly lt?: string; readonly lte?: string };
}

const DEFAULT_LIMIT = 10;
const MAXIMUM_LIMIT = 100;

/** What Stripe knows of one account, in memory. */
export class Store {
  readonly #objects = new Map<string, StripeObject>();
  readonly #clock: Clock;
  /** Of checkout sessions, by their ids. */
  readonly lineItems = new Map<string, readonly LineItem[]>();
  /** Of webhook endpoints, by their ids. */
  readonly secrets = new Map<string, string>();
  /** Ids of methods that were detached: nobody may use one again. */
  readonly detached = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Unix seconds. */
  get now(): number {
    return Math.floor(this.#clock.now().getTime() / 1000);
  }

  /** The members that all objects begin with. */
  base<Name extends ObjectName>(object: Name, prefix: string) {
    return { id: createId(prefix), object, created: this.now, livemode: false } as const;
  }

  /** Adds the object, or puts it in the place of the one with its id. */
  put<Stored extends StripeObject>(object: Stored): Stored {
    this.#objects.set(object.id, object);
    return object;
  }

  find<Name extends ObjectName>(name: Name, id: string): ObjectOf<Name> | undefined {
    const found = this.#objects.get(id);
    return found !== undefined && isNamed(found, name) ? found : undefined;
  }

  /** @throws StripeError 404 where there is none. */
  get<Name extends ObjectName>(name: Name, id: string, param?: string): ObjectOf<Name> {
    const found = this.find(name, id);
    if (found === undefined) throw noSuch(name, id, param);
    return found;
  }

  /** Of any kind, to expand an id. */
  findAny(id: string): StripeObject | undefined {
    return this.#objects.get(id);
  }

  /** The newest first. */
  all<Name extends ObjectName>(name: Name): readonly ObjectOf<Name>[] {
    return [...this.#objects.values()].filter((object) => isNamed(object, name)).toReversed();
  }

  delete(id: string): void {
    this.#objects.delete(id);
  }

  clear(): void {
    for (const kept of [this.#objects, this.lineItems, this.secrets, this.detached]) kept.clear();
  }

  render(): unknown {
    return [...this.#objects.values()];
  }
}

/** One page of a list, the newest first. */
export function pageOf<Item extends StripeObject>(
  items: readonly Item[],
  url: string,
  query: ListQuery,
): ApiList<Item> {
  const { limit = String(DEFAULT_LIMIT), starting_after: after, created = {} } = query;
  const { gt = '-1', gte = '0', lt = 'Infinity', lte = 'Infinity' } = created;
  const isInRange = (at: number): boolean =>
    at > Number(gt) && at >= Number(gte) && at < Number(lt) && at <= Number(lte);
  const inRange = items.filter((item) => isInRange(item.created));
  const rest = after === undefined ? inRange : inRange.slice(inRange.findIndex(({ id }) => id === after) + 1);
  const length = Math.min(Math.max(Number(limit), 1), MAXIMUM_LIMIT);
  return { object: 'list', url, has_more: rest.length > length, data: rest.slice(0, length) };
}

/** An id as Stripe makes them, such as `pi_…`. */
export function createId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`;
}

function isNamed<Name extends ObjectName>(object: StripeObject, name: Name): object is ObjectOf<Name> {
  return object.object === name;
}
