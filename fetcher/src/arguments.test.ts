import { expect, test } from 'vitest';
import { parseFetchArguments } from './arguments.ts';

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
    allowPrivate: false,
    credentialsDirectory: undefined,
  });
});

test('everything can be given', () => {
  expect(parseFetchArguments([...args({ 'credentials-dir': '/secret' }), '--allow-private'])).toMatchObject({
    allowPrivate: true,
    credentialsDirectory: '/secret',
  });
});

test.each([
  { fault: '--url must not be empty', more: { url: undefined } },
  { fault: '--url must not be empty', more: { url: '' } },
  { fault: '--url must be an https URL', more: { url: 'http://files.example.com/s3cret' } },
  { fault: '--url must be an absolute', more: { url: 'ftp://files.example.com/s3cret' } },
  { fault: '--url must not carry credentials', more: { url: 'https://ada:s3cret@files.example.com/' } },
  { fault: '--checksum must be sha256', more: { checksum: undefined } },
  { fault: '--checksum must be sha256', more: { checksum: sha256 } },
  { fault: '--checksum must be sha256', more: { checksum: `md5:${sha256}` } },
  { fault: '--checksum must be sha256', more: { checksum: `sha256:${sha256}0` } },
  { fault: '--checksum must be sha256', more: { checksum: `sha512:${sha256}` } },
  { fault: '--output must be the absolute path', more: { output: undefined } },
  { fault: '--output must be the absolute path', more: { output: 'shop' } },
  { fault: '--output must be the absolute path', more: { output: '/shop/' } },
  { fault: '--max-bytes must be a whole number from 1', more: { 'max-bytes': undefined } },
  { fault: '--max-bytes must be a whole number from 1', more: { 'max-bytes': '0' } },
  { fault: '--max-bytes must be a whole number from 1', more: { 'max-bytes': '1e3' } },
  { fault: '--max-bytes must be a whole number from 1', more: { 'max-bytes': '9007199254740993' } },
  { fault: '--credentials-dir must not be empty', more: { 'credentials-dir': '' } },
  { fault: "Unknown option '--retries'", more: { retries: '5' } },
])('$fault: $more', ({ fault, more }) => {
  const parse = () => parseFetchArguments(args(more));
  expect(parse).toThrow(fault);
  expect(parse).toThrow(expect.objectContaining({ code: 'USAGE', message: expect.not.stringContaining('s3cret') }));
});

test('all faults are reported at once', () => {
  for (const fault of ['command', '--url', '--checksum', '--output', '--max-bytes']) {
    expect(() => parseFetchArguments(['get'])).toThrow(fault);
  }
});
