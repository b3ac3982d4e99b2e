/** Which page of a list that begins with the newest. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
  /** The `nextCursor` of the page before; the page is the one behind it, whatever was made since. */
  readonly cursor: string | undefined;
  /** What was made then or later; all when absent. */
  readonly from?: Date | undefined;
  /** What was made before; all when absent. */
  readonly to?: Date | undefined;
}

/** One page of a list that begins with the newest. */
export interface NewestPage<Item> {
  readonly rows: readonly Item[];
  /** How many the list has, whatever the page; 10,000 where there are more. */
  readonly total: number;
  /** null: there are no older ones. */
  readonly nextCursor: string | null;
}
