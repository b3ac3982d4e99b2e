/**
 * Makes a reader of one that reads for many: what is asked for in the same turn, such as for each entry
 * of a page, is read at once.
 *
 * @param read by id; an id without entry has none.
 */
export function readTogether<Value>(
  read: (ids: readonly string[]) => Promise<ReadonlyMap<string, readonly Value[]>>,
): (id: string) => Promise<readonly Value[]> {
  interface Turn {
    readonly ids: string[];
    readonly values: ReturnType<typeof read>;
  }
  let turn: Turn | undefined;

  function beginTurn(): Turn {
    const ids: string[] = [];
    const values = Promise.resolve().then(() => {
      turn = undefined;
      return read(ids);
    });
    return { ids, values };
  }

  return async (id) => {
    turn ??= beginTurn();
    turn.ids.push(id);
    return (await turn.values).get(id) ?? [];
  };
}
