import {
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isUnionType,
} from 'graphql/index.js';

type Composite = GraphQLObjectType | GraphQLInterfaceType;

/** Numbers that follow from a seed: from 0 to below `limit`. */
export type Random = (limit: number) => number;

/** @see xorshift32 of G. Marsaglia, 2003. */
export function randomFrom(seed: number): Random {
  let state = seed * 2_654_435_761 || 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

/**
 * A valid query with fragments, conditions on `$yes` and `$no`, and fields under the names of other
 * fields.
 */
export function randomQuery(schema: GraphQLSchema, random: Random): string {
  const root = schema.getQueryType();
  if (!root) throw new Error('The schema has no queries');
  const writer = new Writer(schema, random);
  return `query ($yes: Boolean! = true, $no: Boolean = false) { ${writer.selections(root, { depth: 4, taken: new Map() })} a: __typename @skip(if: $yes) b: __typename @include(if: $no) }`;
}

interface Place {
  readonly depth: number;
  /** Which fields have a name in the answer, in this selection set and those around it. */
  readonly taken: Map<string, readonly Taken[]>;
}

interface Taken {
  readonly type: Composite;
  readonly name: string;
  readonly args: string;
}

class Writer {
  readonly #schema: GraphQLSchema;
  readonly #random: Random;

  constructor(schema: GraphQLSchema, random: Random) {
    this.#schema = schema;
    this.#random = random;
  }

  selections(type: Composite, place: Place): string {
    const fields = Object.values(type.getFields()).filter(
      (field) => place.depth > 1 || isLeafType(getNamedType(field.type)),
    );
    const written = Array.from({ length: 1 + this.#random(4) }, () => this.#selection(type, fields, place));
    return written.join(' ') || '__typename';
  }

  #selection(type: Composite, fields: readonly GraphQLField<unknown, unknown>[], place: Place): string {
    const kind = this.#random(10);
    if (kind === 0) return '__typename';
    if (kind < 3) return this.#fragment(type, place);
    const field = fields[this.#random(fields.length)];
    return field === undefined ? '__typename' : this.#field(type, field, place);
  }

  #fragment(type: Composite, place: Place): string {
    const objects = isAbstractType(type) ? this.#schema.getPossibleTypes(type) : [type];
    const of = objects[this.#random(objects.length)] ?? type;
    return `... on ${of.name}${this.#condition()} { ${this.selections(of, place)} }`;
  }

  #field(type: Composite, field: GraphQLField<unknown, unknown>, { depth, taken }: Place): string {
    const names = Object.keys(type.getFields());
    const key = this.#random(3) === 0 ? (names[this.#random(names.length)] ?? field.name) : field.name;
    const named = getNamedType(field.type);
    // An object is asked for once under a name: its parts would have to agree on names, too.
    const uses = taken.get(key) ?? [];
    const use = { type, name: field.name, args: this.#arguments(field) };
    if (uses.some((other) => !isLeafType(named) || !areOne(use, other))) return '__typename';
    taken.set(key, [...uses, use]);
    const asked = `${key === field.name ? '' : `${key}: `}${field.name}${use.args}${this.#condition()}`;
    if (!isCompositeType(named)) return asked;
    const below = { depth: depth - 1, taken: new Map<string, readonly Taken[]>() };
    if (isObjectType(named) || isInterfaceType(named)) return `${asked} { ${this.selections(named, below)} }`;
    return isUnionType(named) ? `${asked} { ${this.#members(named, below)} }` : asked;
  }

  #members(union: Parameters<GraphQLSchema['getPossibleTypes']>[0], place: Place): string {
    const members = this.#schema.getPossibleTypes(union);
    return members.map((member) => `... on ${member.name} { ${this.selections(member, place)} }`).join(' ');
  }

  /** Whole numbers. */
  #arguments({ args }: GraphQLField<unknown, unknown>): string {
    return args.length === 0 ? '' : `(${args.map(({ name }) => `${name}: ${this.#random(2)}`).join()})`;
  }

  #condition(): string {
    return (
      ['', '', '', '', '', '', ' @include(if: $yes)', ' @skip(if: $no)', ' @skip(if: $yes)'][this.#random(9)] ?? ''
    );
  }
}

/** Arguments may differ where no object has both fields. */
function areOne(one: Taken, other: Taken): boolean {
  const isOneOrOther = isObjectType(one.type) && isObjectType(other.type) && one.type !== other.type;
  return one.name === other.name && (one.args === other.args || isOneOrOther);
}
