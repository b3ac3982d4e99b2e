import { describe, expect, test } from 'vitest';
import { chooseProcess, usage } from './processes.ts';

describe('chooseProcess', () => {
  test.each([
    { args: ['registry'] },
    { args: ['operator'] },
    { args: ['communication'] },
    { args: ['payment'] },
    { args: ['federation'] },
    { args: ['fetch'] },
    { args: ['fetch', '--url=https://example.com/a', '--help'] },
    { args: ['cli', 'services', '--output', 'json'] },
  ])('starts $args', ({ args }) => {
    expect(chooseProcess(args)).toEqual({ start: expect.any(Function) });
  });

  test.each([
    { args: [], text: /^rollcall: which process\?\n\nUsage: / },
    { args: ['gatekeeper'], text: /^rollcall: there is no process "gatekeeper"\n\nUsage: / },
    { args: ['constructor'], text: /there is no process "constructor"/ },
    { args: [''], text: /there is no process ""/ },
    { args: ['Registry'], text: /there is no process "Registry"/ },
    { args: ['registry', '--port=1'], text: /^rollcall: registry takes no arguments/ },
    { args: ['operator', 'registry'], text: /^rollcall: operator takes no arguments/ },
  ])('refuses $args', ({ args, text }) => {
    expect(chooseProcess(args)).toEqual({ exitCode: 2, text: expect.stringMatching(text) });
  });

  test('explains itself', () => {
    expect(chooseProcess(['--help'])).toEqual({ exitCode: 0, text: usage });
    const names = ['registry', 'gateway', 'operator', 'communication', 'payment', 'federation', 'fetch', 'cli'];
    for (const name of names) expect(usage).toMatch(new RegExp(`^  ${name} `, 'm'));
  });
});
