/** A member's place in a list. */
export interface Link<T> {
  readonly value: T;
  /** Leaves the list; nothing when it has left. */
  unlink(): void;
  readonly isLinked: boolean;
}

/**
 * Members in the order in which they came, for what comes and goes with every request. With Sets a
 * gateway takes a third more memory and CPU under full load. To measure it again: put Sets in the
 * place of lists and run `npm run bench -- proxy`; decision 0263 has the rule.
 *
 * A Set would hold on to them: V8 replaces a Set's table every so often, the old one refers to the
 * new one, and each to its members of then. Once one table is in the old generation, all that
 * passes through the Set follows it there, until that is collected (`OrderedHashTable` in V8's
 * sources: an obsolete table knows its successor for the sake of iterators).
 */
export class LinkedList<T> {
  readonly #ends: Ends<T> = { first: undefined, last: undefined, size: 0 };

  add(value: T): Link<T> {
    return new Member(value, this.#ends);
  }

  /** The one that has been there longest. */
  get first(): T | undefined {
    return this.#ends.first?.value;
  }

  get isEmpty(): boolean {
    return this.#ends.first === undefined;
  }

  get size(): number {
    return this.#ends.size;
  }

  /** As of now; whoever leaves meanwhile is among them. */
  links(): Link<T>[] {
    const links: Link<T>[] = [];
    for (let member = this.#ends.first; member !== undefined; member = member.next) links.push(member);
    return links;
  }
}

interface Ends<T> {
  first: Member<T> | undefined;
  last: Member<T> | undefined;
  size: number;
}

class Member<T> implements Link<T> {
  readonly value: T;
  isLinked = true;
  next: Member<T> | undefined;
  readonly #ends: Ends<T>;
  #previous: Member<T> | undefined;

  constructor(value: T, ends: Ends<T>) {
    this.value = value;
    this.#ends = ends;
    this.#previous = ends.last;
    if (ends.last === undefined) ends.first = this;
    else ends.last.next = this;
    ends.last = this;
    ends.size += 1;
  }

  unlink(): void {
    if (!this.isLinked) return;
    this.isLinked = false;
    this.#ends.size -= 1;
    const { next } = this;
    const previous = this.#previous;
    if (previous === undefined) this.#ends.first = next;
    else previous.next = next;
    if (next === undefined) this.#ends.last = previous;
    else next.#previous = previous;
    // Refers to nobody any more: one that is old would keep the next ones.
    this.next = undefined;
    this.#previous = undefined;
  }
}
