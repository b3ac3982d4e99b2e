import { expect, test } from 'vitest';
import { parseCommonArguments, parseFetchArguments } from './arguments.ts';

const sha256 = 'aB'.repeat(32);

const good: Readonly<Record<string, string>> = {
  url: 'https://files.example.com/shop?signature=s3cret',
  checksum: `sha256:${sha256}`,
  output: '/rollcall/artifact/shop',
  'max-bytes': '1000',
};

function args(more: Readonly<Record<string, string | undefined>> = {}): string[] {
  const given = Object.entries({ ...good, ...more });
  return ['fetch', ...given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]))];
}

test('what is not given has a default', () => {
  expect(parseFetchArguments(args())).toEqual({
    url: new URL('https://files.example.com/shop?signature=s3cret'),
    checksum: { algorithm: 'sha256', hex: sha256.toLowerCase() },
    output: '/rollcall/artifact/shop',
    maxBytes: 1000,
    mode: 0o755,
    allowPrivate: false,
    credentialsDirectory: undefined,
    attempts: 6,
    timeoutMs: 600_000,
  });
});

test('everything can be given', () => {
  const more = { mode: '640', 'credentials-dir': '/secret', attempts: '1', 'timeout-seconds': '5' };
  expect(parseFetchArguments([...args(more), '--allow-private', '--termination-log', '/x'])).toMatchObject({
    mode: 0o640,
    allowPrivate: true,
    credentialsDirectory: '/secret',
    attempts: 1,
    timeoutMs: 5000,
  });
});

test.each([
  { fault: '--url is required', more: { url: undefined } },
  { fault: '--url is required', more: { url: '' } },
  { fault: '--url must be an https URL', more: { url: 'http://files.example.com/s3cret' } },
  { fault: '--url must be an absolute', more: { url: 'ftp://files.example.com/s3cret' } },
  { fault: '--url must not carry credentials', more: { url: 'https://ada:s3cret@files.example.com/' } },
  { fault: '--checksum is required', more: { checksum: undefined } },
  { fault: '--checksum must be sha256', more: { checksum: sha256 } },
  { fault: '--checksum must be sha256', more: { checksum: `md5:${sha256}` } },
  { fault: '--checksum must be sha256', more: { checksum: `sha256:${sha256}0` } },
  { fault: '--checksum must be sha256', more: { checksum: `sha512:${sha256}` } },
  { fault: '--output is required', more: { output: undefined } },
  { fault: '--output must be the absolute path', more: { output: 'shop' } },
  { fault: '--output must be the absolute path', more: { output: '/shop/' } },
  { fault: '--max-bytes is required', more: { 'max-bytes': undefined } },
  { fault: '--max-bytes must be a whole number from 1', more: { 'max-bytes': '0' } },
  { fault: '--max-bytes must be a whole number from 1', more: { 'max-bytes': '1e3' } },
  { fault: '--mode must be three octal digits', more: { mode: '4755' } },
  { fault: '--mode must be three octal digits', more: { mode: '0888' } },
  { fault: '--attempts must be a whole number from 1 to 100', more: { attempts: '0' } },
  { fault: '--timeout-seconds must be a whole number', more: { 'timeout-seconds': '1.5' } },
  { fault: '--credentials-dir must not be empty', more: { 'credentials-dir': '' } },
  { fault: "Unknown option '--retries'", more: { retries: '5' } },
])('$fault: $more', ({ fault, more }) => {
  const parse = () => parseFetchArguments(args(more));
  expect(parse).toThrow(fault);
  expect(parse).toThrow(expect.objectContaining({ code: 'USAGE', message: expect.not.stringContaining('s3cret') }));
});

test('all faults are reported at once', () => {
  for (const fault of ['command', '--url', '--checksum', '--output', '--max-bytes', '--mode']) {
    expect(() => parseFetchArguments(['get', '--mode', 'x'])).toThrow(fault);
  }
});

test('where the last words go is found in wrong usage too', () => {
  const wrong = ['--nonsense', '--termination-log', '/log', '--mode'];
  expect(parseCommonArguments(wrong)).toEqual({ help: false, terminationLog: '/log' });
  expect(parseCommonArguments(['--help'])).toEqual({ help: true, terminationLog: undefined });
});
