import { randomBytes } from 'node:crypto';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCertificates } from '@rollcall/local/certificates.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { chunked, part, ranged, redirect, stall, status, whole } from './artifact-server.ts';
import { type FetcherFixture, sha256, startFetcherFixture } from './fixture.ts';

let fixture: FetcherFixture;
let content: Buffer;
/** How many requests the server had seen before the test. */
let before: number;

beforeAll(async () => {
  fixture = await startFetcherFixture();
  content = fixture.content;
});

beforeEach(() => {
  before = fixture.server.requests.length;
});

afterAll(() => fixture[Symbol.asyncDispose]());

const requests = () => fixture.server.requests.slice(before);
const ranges = () => requests().map(({ headers }) => headers.range);

/** What a fetch leaves that went well. */
const done = { error: undefined, names: ['shop'] };

test('a file is fetched whole, with its permissions, and nothing else is left', async () => {
  fixture.server.answer(whole(content));
  const path = await fixture.directory();
  const fetched = await fixture.fetch({ path });
  expect(fetched).toMatchObject({ ...done, reports: [] });
  expect(fetched.file?.equals(content)).toBe(true);
  expect((await stat(join(path, 'shop'))).mode & 0o7777).toBe(0o755);
  expect(requests()).toHaveLength(1);
});

test('a file that is there already is not fetched again', async () => {
  fixture.server.answer(whole(content));
  const path = await fixture.directory();
  await fixture.fetch({ path });
  const { mtimeMs, ino } = await stat(join(path, 'shop'));
  expect(await fixture.fetch({ path })).toMatchObject(done);
  expect(requests()).toHaveLength(1);
  expect(await stat(join(path, 'shop'))).toMatchObject({ mtimeMs, ino });
});

test('another file at its path is replaced, also a longer one', async () => {
  fixture.server.answer(whole(content));
  const path = await fixture.directory();
  await writeFile(join(path, 'shop'), randomBytes(2 * 1024 * 1024));
  const fetched = await fixture.fetch({ path });
  expect(fetched).toMatchObject(done);
  expect(fetched.file?.equals(content)).toBe(true);
});

test('an empty file is a file', async () => {
  fixture.server.answer(whole(Buffer.alloc(0)));
  const fetched = await fixture.fetch({ checksum: sha256(Buffer.alloc(0)) });
  expect(fetched).toMatchObject(done);
  expect(fetched.file).toHaveLength(0);
});

test('a download that breaks goes on where it broke', async () => {
  const etag = '"one"';
  fixture.server.answer(fixture.cut(100_000, { headers: { etag } }), ranged(content, etag));
  const fetched = await fixture.fetch();
  expect(fetched).toMatchObject({ ...done, reports: [expect.stringMatching(/trying again .* \(attempt 1 of 4\)/)] });
  expect(fetched.file?.equals(content)).toBe(true);
  expect(ranges()).toEqual([undefined, 'bytes=100000-']);
  expect(requests()[1]?.headers).toMatchObject({ 'if-range': etag });
});

test('a download that breaks again and again goes on each time', async () => {
  const etag = '"one"';
  fixture.server.answer(
    fixture.cut(50_000, { headers: { etag } }),
    fixture.cut(120_000, { start: 50_000, headers: { etag } }),
    status(503),
    fixture.cut(120_001, { start: 120_000, headers: { etag } }),
    ranged(content, etag),
  );
  const fetched = await fixture.fetch({ attempts: 5 });
  expect(fetched).toMatchObject(done);
  expect(fetched.file?.equals(content)).toBe(true);
  expect(ranges()).toEqual([undefined, 'bytes=50000-', 'bytes=120000-', 'bytes=120000-', 'bytes=120001-']);
});

test('a connection that is reset counts as broken', async () => {
  const etag = '"stalled"';
  const path = await fixture.directory();
  fixture.server.answer(
    stall(content, 100_000, async (response) => {
      // Reset earlier, what was sent could be lost on the way.
      await fixture.stored(100_000);
      fixture.server.reset(response);
    }),
    ranged(content, etag),
  );
  const fetched = await fixture.fetch({ path });
  expect(fetched).toMatchObject(done);
  expect(fetched.file?.equals(content)).toBe(true);
  expect(ranges()).toEqual([undefined, 'bytes=100000-']);
});

test('a server that falls silent is left, and asked for the rest', async () => {
  fixture.server.answer(stall(content, 100_000), ranged(content, '"stalled"'));
  const fetched = await fixture.fetch({ idleTimeoutMs: 3000 });
  expect(fetched).toMatchObject(done);
  expect(fetched.file?.equals(content)).toBe(true);
  expect(ranges()).toEqual([undefined, 'bytes=100000-']);
});

test('a server that never answers is left', async () => {
  fixture.server.answer(() => undefined, whole(content));
  expect(await fixture.fetch({ idleTimeoutMs: 3000 })).toMatchObject(done);
  expect(requests()).toHaveLength(2);
});

test.each([
  ['does not know ranges', () => whole(content, { etag: '"one"' }), 1],
  ['has another file by now', () => ranged(content, '"two"'), 1],
  [
    'sends another part',
    () => part(content, { 'content-range': `bytes 5-${content.length - 1}/${content.length}` }, 5),
    2,
  ],
  ['sends a part without saying which', () => part(content, {}, 100_000), 2],
  [
    'sends the rest of another file',
    () =>
      part(
        content,
        { etag: '"two"', 'content-range': `bytes 100000-${content.length - 1}/${content.length}` },
        100_000,
      ),
    2,
  ],
  ['refuses the range', () => status(416, { 'content-range': `bytes */${content.length}` }), 2],
])('where the server %s, all is fetched anew', async (_what, second, retries) => {
  const first = Buffer.concat([randomBytes(1000), content]).subarray(0, content.length);
  fixture.server.answer(fixture.cut(100_000, { content: first, headers: { etag: '"one"' } }), second(), whole(content));
  const fetched = await fixture.fetch();
  expect(fetched).toMatchObject(done);
  expect(fetched.file?.equals(content)).toBe(true);
  expect(fetched.reports).toHaveLength(retries);
  // It was noticed at once, and not by what came out in the end.
  expect(fetched.reports.join()).not.toContain('checksum');
  expect(ranges()).toEqual([undefined, 'bytes=100000-', undefined].slice(0, retries + 1));
});

test.each([
  ['nothing to distinguish files by', {}, undefined],
  ['a weak ETag', { etag: 'W/"one"' }, undefined],
  ['the date of the last change', { 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' }, 'bytes=100000-'],
])('with %s the rest is asked for: %#', async (_what, headers, range) => {
  fixture.server.answer(fixture.cut(100_000, { headers }), whole(content));
  expect(await fixture.fetch()).toMatchObject(done);
  expect(ranges()).toEqual([undefined, range]);
});

test.each([408, 429, 500, 502, 503, 504])('%d is tried again', async (code) => {
  fixture.server.answer(status(code), whole(content));
  expect(await fixture.fetch()).toMatchObject({ ...done, reports: [expect.stringContaining(`answered ${code}`)] });
});

test('Retry-After is waited for', async () => {
  fixture.server.answer(status(429, { 'retry-after': '1' }), whole(content));
  const started = performance.now();
  expect(await fixture.fetch()).toMatchObject(done);
  expect(performance.now() - started).toBeGreaterThan(990);
});

test.each([400, 401, 403, 404, 410, 304])('%d is final', async (code) => {
  fixture.server.answer(status(code));
  const fetched = await fixture.fetch({ url: `${fixture.server.origin}/shop?signature=abc` });
  expect(fetched).toMatchObject({ names: [], error: { code: 'FAILED' } });
  expect(String(fetched.error)).toContain(`/shop answered ${code}`);
  expect(String(fetched.error)).not.toContain('abc');
  expect(requests()).toHaveLength(1);
});

test('a server that keeps failing is given up after the last attempt', async () => {
  fixture.server.answer(status(500));
  const fetched = await fixture.fetch({ attempts: 3 });
  expect(fetched).toMatchObject({ names: [], error: { code: 'FAILED', message: expect.stringContaining('3 of 3') } });
  expect(requests()).toHaveLength(3);
});

test('nobody listening is tried again and given up', async () => {
  const gone = await fixture.startServer();
  await gone[Symbol.asyncDispose]();
  const fetched = await fixture.fetch({ url: `${gone.origin}/shop?x=secret`, attempts: 2 });
  expect(fetched).toMatchObject({
    names: [],
    error: { code: 'FAILED', message: expect.stringContaining('ECONNREFUSED') },
  });
  expect(fetched.reports).toHaveLength(1);
  expect(JSON.stringify(fetched.reports) + String(fetched.error)).not.toContain('secret');
});

test('a wrong checksum is tried once more, from the start and past caches', async () => {
  const wrong = Buffer.from(content);
  wrong[1000] = (wrong[1000] ?? 0) ^ 1;
  fixture.server.answer(whole(wrong, { etag: '"one"' }), whole(content));
  const fetched = await fixture.fetch();
  expect(fetched).toMatchObject(done);
  expect(fetched.file?.equals(content)).toBe(true);
  expect(ranges()).toEqual([undefined, undefined]);
  expect(requests().map(({ headers }) => headers['cache-control'])).toEqual([undefined, 'no-cache']);
});

test('a checksum that stays wrong leaves nothing of the file, and what was there before', async () => {
  fixture.server.answer(whole(randomBytes(1000)));
  const path = await fixture.directory();
  expect(await fixture.fetch({ path })).toMatchObject({ names: [], error: { code: 'CHECKSUM_MISMATCH' } });
  expect(requests()).toHaveLength(2);
  await writeFile(join(path, 'shop'), 'before');
  const fetched = await fixture.fetch({ path });
  expect(fetched).toMatchObject({ names: ['shop'], error: { code: 'CHECKSUM_MISMATCH' } });
  expect(fetched.file?.toString()).toBe('before');
});

test.each([
  ['with Content-Length', () => whole(content)],
  ['without Content-Length', () => chunked(content)],
])('a file too large is refused: %s', async (_what, answer) => {
  fixture.server.answer(answer());
  expect(await fixture.fetch({ maxBytes: content.length - 1 })).toMatchObject({
    names: [],
    error: { code: 'TOO_LARGE' },
  });
  expect(requests()).toHaveLength(1);
  fixture.server.answer(answer());
  expect(await fixture.fetch({ maxBytes: content.length })).toMatchObject(done);
});

test('a file that is said to be too large is not received at all', async () => {
  fixture.server.answer(stall(Buffer.alloc(1024 * 1024 + 1), 0, (response) => response.flushHeaders()));
  expect(await fixture.fetch()).toMatchObject({ names: [], error: { code: 'TOO_LARGE' } });
});

test('a rest that would be too large is refused', async () => {
  const etag = '"one"';
  const tooLarge = part(content, { etag, 'content-range': `bytes 100000-${content.length - 1}/9999999` }, 100_000);
  fixture.server.answer(fixture.cut(100_000, { headers: { etag } }), tooLarge);
  expect(await fixture.fetch()).toMatchObject({ names: [], error: { code: 'TOO_LARGE' } });
});

test('a server that sends a byte now and then is given up when the time is over', async () => {
  const dripping = stall(content, 1, (response) => {
    const timer = setInterval(() => response.write('x'), 50);
    response.on('close', () => clearInterval(timer));
  });
  fixture.server.answer(dripping);
  const fetched = await fixture.fetch({ timeoutMs: 4000 });
  expect(fetched).toMatchObject({ names: [], error: { message: expect.stringContaining('not fetched within 4 s') } });
  expect(requests()).toHaveLength(1);
});

test('an abort ends the wait for the next attempt, and leaves nothing', async () => {
  fixture.server.answer(status(503));
  const stop = new AbortController();
  const report = () => stop.abort(new Error('stopped'));
  const fetched = await fixture.fetch({ signal: stop.signal, report, backoff: { baseMs: 600_000, maxMs: 600_000 } });
  expect(fetched).toMatchObject({ names: [], error: { message: 'stopped' } });
});

test('a certificate that nobody vouches for is refused at once', async () => {
  const unknown = await fixture.startServer(await createCertificates(await fixture.directory()));
  unknown.answer(whole(content));
  const fetched = await fixture.fetch({ url: `${unknown.origin}/shop` });
  expect(fetched).toMatchObject({ names: [], reports: [], error: { code: 'FAILED' } });
  expect(String(fetched.error)).toContain('certificate');
  expect(unknown.requests).toHaveLength(0);
});

test('where the file cannot be written, that is said and nothing is tried again', async () => {
  fixture.server.answer(whole(content));
  const path = await fixture.directory();
  await mkdir(join(path, 'shop'));
  const occupied = await fixture.fetch({ path });
  expect(occupied).toMatchObject({ names: ['shop'], reports: [], error: { code: 'FAILED' } });
  expect(String(occupied.error)).toContain('/shop: it is a directory');
  const missing = await fixture.fetch({ path: join(path, 'missing') });
  expect(missing).toMatchObject({ names: [], reports: [], error: { code: 'FAILED' } });
  expect(String(missing.error)).toContain('no such file or directory');
  expect(requests()).toHaveLength(1);
});

test('a redirect is followed on each attempt, so that a short-lived target is asked for anew', async () => {
  const etag = '"one"';
  fixture.server.answer(
    redirect('/files/1'),
    fixture.cut(100_000, { headers: { etag } }),
    redirect('/files/2'),
    ranged(content, etag),
  );
  expect(await fixture.fetch()).toMatchObject(done);
  expect(requests().map(({ path }) => path)).toEqual(['/shop', '/files/1', '/shop', '/files/2']);
  expect(requests()[3]?.headers.range).toBe('bytes=100000-');
});
