import { spawnSync } from 'node:child_process';
import { phpUrlEncode } from '@rollcall/payment/providers/payfast/signature.ts';
import { urlencode } from '@rollcall/simulators/payfast/signatures.ts';
import { sample, string } from 'fast-check';
import { expect, test } from 'vitest';
import { findProgram } from '../support/debian-program.ts';

const php = await findProgram({ name: 'php', packageName: 'php-cli', fileName: /^php\d[\d.]*$/ });

test.skipIf(php === undefined)('any text is encoded as by PHP, which PayFast is written in', () => {
  const texts = sample(string({ unit: 'binary', maxLength: 60 }), 2000);
  const script = 'echo json_encode(array_map("urlencode", json_decode(stream_get_contents(STDIN))));';
  const { file, env } = php ?? { file: '', env: {} };
  const { stdout } = spawnSync(file, ['-r', script], { input: JSON.stringify(texts), encoding: 'utf8', env });
  const byPhp: unknown = JSON.parse(stdout);
  expect(texts.map(urlencode)).toEqual(byPhp);
  expect(texts.map(phpUrlEncode)).toEqual(byPhp);
});
