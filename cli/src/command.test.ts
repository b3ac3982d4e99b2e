import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addGlobalOptions, printPage } from './command.ts';

interface Body {
  readonly names: readonly string[];
  readonly nextCursor: string | null;
}

/** What a command prints that lists names. */
function printed(body: Body, args: readonly string[] = []) {
  let out = '';
  let err = '';
  const deps = {
    env: {},
    cwd: '/',
    now: () => new Date(0),
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    hasTerminal: false,
    exitWith: () => {},
  };
  const command = addGlobalOptions(new Command());
  command.action(() => {
    printPage(command, deps, { body, rows: body.names, what: 'names', asText: (names) => `${names.join()}\n` });
  });
  command.parse(args, { from: 'user' });
  return { out, err };
}

describe('a page of a list', () => {
  it('is all that there is where nothing follows', () => {
    expect(printed({ names: ['ada', 'bob'], nextCursor: null })).toEqual({ out: 'ada,bob\n', err: '' });
  });

  it('tells people that there are more, beside the table', () => {
    const { out, err } = printed({ names: ['ada'], nextCursor: 'x' });
    expect([out, err]).toEqual(['ada\n', expect.stringContaining('There are more names')]);
  });

  it('is the body in JSON, whose cursor says it', () => {
    const body = { names: ['ada'], nextCursor: 'x' };
    const { out, err } = printed(body, ['-o', 'json']);
    expect([JSON.parse(out), err]).toEqual([body, '']);
  });

  it('says that there is none', () => {
    expect(printed({ names: [], nextCursor: null })).toEqual({ out: '', err: 'There are no such names.\n' });
  });
});
