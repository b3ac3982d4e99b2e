import { describe, expect, it, test } from 'vitest';
import { apiUrl, createServers } from './servers.ts';

describe('servers', () => {
  it.each([
    { urls: 'http://one:3001', expected: ['http://one:3001'] },
    { urls: 'http://one:3001///', expected: ['http://one:3001'] },
    { urls: 'https://one/registry/', expected: ['https://one/registry'] },
    { urls: ['http://one', 'http://two', 'http://one/'], expected: ['http://one', 'http://two'] },
  ])('reads $urls as $expected', ({ urls, expected }) => {
    expect(createServers(urls).inOrder()).toEqual(expected);
  });

  it.each([
    { urls: [], message: 'at least one' },
    { urls: '', message: 'not a valid URL' },
    { urls: 'one:3001', message: 'http or https' },
    { urls: 'ftp://one', message: 'http or https' },
    { urls: 'http://me:secret@one', message: 'credentials' },
    { urls: 'http://one?x=1', message: 'query' },
    { urls: 'http://one#x', message: 'fragment' },
  ])('refuses $urls: $message', ({ urls, message }) => {
    expect(() => createServers(urls)).toThrow(message);
  });

  it('does not repeat a password in its error', () => {
    expect(() => createServers('http://me:secret@one')).not.toThrow('secret');
  });

  it('goes on with the next one after a failure, and stays with the one that answered', () => {
    const servers = createServers(['http://one', 'http://two', 'http://three']);
    servers.distrust('http://one');
    expect(servers.inOrder()).toEqual(['http://two', 'http://three', 'http://one']);
    servers.distrust('http://one');
    expect(servers.inOrder()[0]).toBe('http://two');
    servers.prefer('http://three');
    servers.distrust('http://three');
    expect(servers.inOrder()).toEqual(['http://one', 'http://two', 'http://three']);
  });
});

test.each([
  { server: 'http://one:3001', url: 'http://one:3001/api/v1' },
  { server: 'https://one/below', url: 'https://one/below/api/v1' },
  { server: 'https://one/api/v1', url: 'https://one/api/v1' },
  { server: 'https://one/api/v1/registry', url: 'https://one/api/v1/registry' },
  { server: 'https://one/api/v1x', url: 'https://one/api/v1x/api/v1' },
])('the API of $server is at $url', ({ server, url }) => {
  expect(apiUrl(server)).toBe(url);
});
