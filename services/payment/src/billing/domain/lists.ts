/** Whose things a caller sees: those of a subject, or of all where undefined. */
export type Owner = string | undefined;

/** Which page of a list; see `platform/src/http/lists.ts`. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string | undefined;
}

/** One page of a list that begins with the newest. */
export interface NewestPage<Item> {
  readonly rows: readonly Item[];
  /** How many the list has, whatever the page. */
  readonly total: number;
  /** null: there are no older ones. */
  readonly nextCursor: string | null;
}
