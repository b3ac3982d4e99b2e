import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseGateway, chooseServer } from './settings.ts';

let root = '';
let below = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rollcall-settings-'));
  below = join(root, 'a', 'b');
  mkdirSync(below, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

function writeEndpoints(directory: string, text: string): string {
  mkdirSync(join(directory, '.local'), { recursive: true });
  const path = join(directory, '.local', 'endpoints.json');
  writeFileSync(path, text);
  return path;
}

const choose = (sources: { option?: string; variable?: string } = {}) =>
  chooseServer({ option: sources.option, variable: sources.variable, cwd: below });

describe('chooseServer', () => {
  it('prefers the option to the variable, that to the file, and that to the default', () => {
    expect(choose()).toEqual({ servers: ['http://127.0.0.1:3001'], source: 'the default' });
    const path = writeEndpoints(root, '{"registry":"http://127.0.0.1:41234"}');
    expect(choose()).toEqual({ servers: ['http://127.0.0.1:41234'], source: path });
    expect(choose({ variable: '' }).source).toBe(path);
    expect(choose({ variable: 'http://v' })).toEqual({ servers: ['http://v'], source: 'ROLLCALL_SERVER' });
    expect(choose({ option: 'http://o', variable: 'http://v' })).toEqual({ servers: ['http://o'], source: '--server' });
  });

  it('prefers the nearest file', () => {
    writeEndpoints(root, '{"registry":"http://127.0.0.1:1111"}');
    const nearest = writeEndpoints(below, '{"registry":"http://localhost:2222/api/v1"}');
    expect(choose()).toEqual({ servers: ['http://localhost:2222'], source: nearest });
  });

  it('accepts several URLs', () => {
    expect(choose({ option: 'http://a, http://b,' }).servers).toEqual(['http://a', 'http://b']);
  });

  it.each([
    ['{', 'is not JSON'],
    ['null', 'names no registry on this machine'],
    ['{}', 'names no registry on this machine'],
    ['{"registry":7}', 'names no registry on this machine'],
    ['{"registry":"not a url"}', 'names no registry on this machine'],
    ['{"registry":"http://collector.example"}', 'names no registry on this machine'],
    ['{"registry":"http://127.0.0.1.example"}', 'names no registry on this machine'],
  ])('refuses the file %j: it %s', (text, message) => {
    writeEndpoints(root, text);
    expect(() => choose()).toThrow(message);
    expect(choose({ option: 'http://o' }).servers).toEqual(['http://o']);
  });
});

const chosen = (sources: { option?: string; variable?: string } = {}) =>
  chooseGateway({ option: sources.option, variable: sources.variable, cwd: below });

describe('chooseGateway', () => {
  it('prefers the option to the variable, that to the file with its client, and that to the default', () => {
    expect(chosen()).toEqual({ url: 'http://127.0.0.1:3000', source: 'the default' });
    const client = { id: 'demo', secret: 'drawn' };
    const path = writeEndpoints(root, JSON.stringify({ gateway: 'http://127.0.0.1:4', demoClient: client }));
    expect(chosen()).toEqual({ url: 'http://127.0.0.1:4', source: path, client });
    expect(chosen({ variable: 'https://v/' })).toEqual({ url: 'https://v', source: 'ROLLCALL_GATEWAY' });
    expect(chosen({ option: 'https://o', variable: 'https://v' })).toEqual({ url: 'https://o', source: '--gateway' });
  });

  it('sends the client of a file to no other machine', () => {
    writeEndpoints(root, JSON.stringify({ gateway: 'http://collector.example', demoClient: { id: 'a', secret: 'b' } }));
    expect(() => chosen()).toThrow('names no gateway on this machine');
  });

  it.each(['ftp://o', 'o'])('refuses %s', (option) => {
    expect(() => chosen({ option })).toThrow('no http or https URL');
  });
});
