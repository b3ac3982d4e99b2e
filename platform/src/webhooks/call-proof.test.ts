import { describe, expect, test } from 'vitest';
import { type CallProof, judgeProof, type SignatureRules } from './call-proof.ts';
import { callParts, sign, signStandard } from './signatures.ts';

const SECRET = 'k3y';
const now = new Date('2026-11-20T12:00:00.500Z');
const seconds = Math.floor(now.getTime() / 1000);
const body = Buffer.from('{"service_name":"shop"}');
const path = '/api/v1/webhooks/deploy';
const strict: SignatureRules = { plainSignatures: false, legacySignatures: false };
const contract: SignatureRules = { plainSignatures: true, legacySignatures: false };
const legacy: SignatureRules = { plainSignatures: true, legacySignatures: true };

function proof(fields: Partial<CallProof>): CallProof {
  const standard = { id: undefined, timestamp: undefined, signature: undefined };
  return {
    path,
    body,
    isBound: true,
    signature: undefined,
    timestamp: undefined,
    standard,
    secrets: [],
    ...fields,
  };
}

function standard(timestamp: number | string = seconds, id = 'msg_1') {
  return { id, timestamp: `${timestamp}`, signature: signStandard(SECRET, { id, timestamp: `${timestamp}`, body }) };
}

function stamped(timestamp: number | string = seconds, signedPath = path) {
  return {
    timestamp: `${timestamp}`,
    signature: sign(SECRET, callParts({ timestamp: `${timestamp}`, path: signedPath, body })),
  };
}

/** As senders signed before the path was part of it. */
function pathless(timestamp: number | string = seconds) {
  return { timestamp: `${timestamp}`, signature: sign(SECRET, `${timestamp}.${body.toString()}`) };
}

const judge = (fields: Partial<CallProof>, at = now, rules = contract) =>
  judgeProof(SECRET, proof(fields), { now: at, rules });

function idOf(fields: Partial<CallProof>, rules = contract): string | undefined {
  const verdict = judge(fields, now, rules);
  return verdict.proven ? verdict.once?.id : 'not proven';
}

function digestOf(of: string): string | undefined {
  const verdict = judge({ standard: standard(), path: of });
  return verdict.proven ? verdict.once?.digest.toString('hex') : 'not proven';
}

describe('a call without a timestamp', () => {
  test.each<[string, Partial<CallProof>]>([
    ['the signature of the body', { signature: sign(SECRET, body) }],
    ['the secret in the body', { secrets: [undefined, SECRET] }],
    ['the right secret beside a wrong signature', { secrets: [SECRET], signature: sign('other', body) }],
    ['the right signature beside a wrong secret', { secrets: ['other'], signature: sign(SECRET, body) }],
  ])('is proven by %s, any number of times', (_what, fields) => {
    expect(judge(fields)).toEqual({ proven: true, once: undefined });
  });

  test.each<[string, Partial<CallProof>]>([
    ['another secret', { secrets: ['other', ''] }],
    ['the signature of another secret', { signature: sign('other', body) }],
    ['a Standard signature without its timestamp', { standard: { ...standard(), timestamp: undefined } }],
  ])('is not proven by %s', (_what, fields) => {
    expect(judge(fields)).toEqual({ proven: false, reason: expect.stringContaining('is wrong; sign') });
  });

  test('that shows nothing is told what to show', () => {
    const reason = expect.stringMatching(/which the call must prove to know; sign <timestamp>.<path>.<body>/);
    expect(judge({})).toEqual({ proven: false, reason });
  });
});

describe('a call whose body does not say what it is for', () => {
  test.each<[string, Partial<CallProof>]>([
    ['the signature of the body', { signature: sign(SECRET, body) }],
    ['a signature with its time alone', pathless()],
    ['a Standard signature', { standard: standard() }],
  ])('is not proven by %s', (_what, fields) => {
    expect(judge(fields, now, legacy).proven).toBe(true);
    const unbound = judge({ ...fields, isBound: false }, now, legacy);
    expect(unbound).toEqual({ proven: false, reason: expect.stringContaining('name') });
  });

  test('is proven by a signature that covers the path', () => {
    expect(judge({ ...stamped(), isBound: false }).proven).toBe(true);
    const bare = { body: Buffer.alloc(0), timestamp: `${seconds}`, isBound: false };
    const signature = sign(SECRET, `${seconds}.${path}.`);
    expect(judge({ ...bare, signature }).proven).toBe(true);
    expect(judge({ ...bare, signature, path: '/api/v1/jobs/other/abort' }).proven).toBe(false);
  });

  test('is proven by the secret in it', () => {
    expect(judge({ isBound: false, secrets: [SECRET], signature: sign(SECRET, body) }).proven).toBe(true);
  });
});

describe('the path', () => {
  test('of a signature with a timestamp is the one that was signed', () => {
    expect(judge(stamped()).proven).toBe(true);
    for (const other of ['/api/v1/webhooks/update', '/api/v1/webhooks/deploy/', '/api/v1/registry/webhooks/deploy']) {
      expect(judge(stamped(seconds, other))).toEqual({ proven: false, reason: expect.stringContaining(path) });
    }
    // The same bytes at the same time, signed for two paths, are two calls.
    const update = { ...stamped(seconds, '/api/v1/webhooks/update'), path: '/api/v1/webhooks/update' };
    expect(idOf(update)).not.toBe(idOf(stamped()));
  });

  test('may be left out of it where that is allowed, and the call is then good for the first path alone', () => {
    expect(judge(pathless())).toEqual({ proven: false, reason: expect.stringContaining('<timestamp>.<path>.<body>') });
    expect(judge(pathless(), now, legacy).proven).toBe(true);
    expect(judge(stamped(), now, legacy).proven).toBe(true);
    const elsewhere = { ...pathless(), path: '/api/v1/webhooks/update' };
    expect(idOf(elsewhere, legacy)).toBe(idOf(pathless(), legacy));
    expect(judge(elsewhere, now, legacy)).not.toEqual(judge(pathless(), now, legacy));
  });

  test('and the time are asked for where signatures of the body alone are switched off', () => {
    const signature = sign(SECRET, body);
    expect(judge({ signature }, now, strict)).toEqual({
      proven: false,
      reason: expect.stringContaining('send X-Webhook-Timestamp'),
    });
    expect(judge({ secrets: [SECRET] }, now, strict).proven).toBe(true);
    expect(judge(stamped(), now, strict).proven).toBe(true);
    expect(judge({ standard: standard() }, now, strict).proven).toBe(true);
  });
});

describe('a call with a timestamp', () => {
  test.each([-300, -299, 0, 299, 300])('is proven %i s off the clock, and good once', (offset) => {
    for (const fields of [stamped(seconds + offset), { standard: standard(seconds + offset) }]) {
      // A whole second is where the header cannot say more.
      const at = new Date(seconds * 1000);
      expect(judge(fields, at)).toMatchObject({ proven: true, once: { id: expect.any(String) } });
    }
  });

  test.each([-301, 301, -86_400])('is too old or too new %i s off the clock', (offset) => {
    for (const fields of [stamped(seconds + offset), { standard: standard(seconds + offset) }]) {
      expect(judge(fields)).toEqual({ proven: false, reason: expect.stringContaining('timestamp') });
    }
    // Also where the secret itself is in the body.
    const secrets = [SECRET];
    expect(judge({ timestamp: `${seconds + offset}`, secrets }).proven).toBe(false);
  });

  test.each(['', 'now', '1.5', '-1', '0x10', `${seconds}000`, ' 1', '2026-11-20T12:00:00Z'])(
    'is refused where it is %j',
    (timestamp) => {
      expect(judge(stamped(timestamp)).proven).toBe(false);
      expect(judge({ standard: standard(timestamp) }).proven).toBe(false);
    },
  );

  test('must be signed with it', () => {
    expect(judge({ timestamp: `${seconds}`, signature: sign(SECRET, body) }).proven).toBe(false);
    expect(judge({ ...stamped(seconds - 1), timestamp: `${seconds}` }).proven).toBe(false);
    expect(judge({ ...stamped(), timestamp: undefined }).proven).toBe(false);
    expect(judge({ standard: { ...standard(), id: 'msg_2' } }).proven).toBe(false);
  });

  test.each([
    ['as long as its timestamp is good for', 600, stamped(seconds + 300)],
    ['three days where it has an id, with which it is tried again', 3 * 86_400, { standard: standard(seconds + 300) }],
  ])('is remembered for %s', (_how, least, fields) => {
    const verdict = judge(fields);
    if (!verdict.proven || verdict.once === undefined) throw new Error('not proven');
    expect(verdict.once.until.getTime()).toBeGreaterThan((seconds + least) * 1000);
  });

  test('is the same call by its id, else by its time and content, however the signature is spelt', () => {
    const { timestamp, signature } = stamped();
    const upper = { timestamp, signature: signature.replace('sha256=', '').toUpperCase() };
    expect(idOf(upper)).toBe(idOf(stamped()));
    expect(idOf(stamped(seconds - 1))).not.toBe(idOf(stamped()));
    expect(idOf({ standard: standard(seconds - 1) })).toBe(idOf({ standard: standard() }));
    expect(idOf({ standard: standard(seconds, 'msg_2') })).not.toBe(idOf({ standard: standard() }));
  });

  test('to do something else is another call of the same id', () => {
    expect(digestOf('/a')).toBe(digestOf('/a'));
    expect(digestOf('/b')).not.toBe(digestOf('/a'));
  });

  test.each<[string, Partial<CallProof['standard']>]>([
    ['an id', { id: 'msg_1' }],
    ['a time', { timestamp: `${seconds}` }],
    ['a signature', { signature: 'v1,abc' }],
    ['all of them, right', standard()],
  ])('with X-Webhook-Timestamp is refused beside %s of Standard Webhooks', (_what, headers) => {
    const none = { id: undefined, timestamp: undefined, signature: undefined };
    for (const fields of [stamped(), { timestamp: `${seconds}`, secrets: [SECRET] }]) {
      expect(judge({ ...fields, standard: { ...none, ...headers } }).proven).toBe(false);
    }
  });

  test('is not known by an id or a time that is not signed', () => {
    const signature = sign(SECRET, body);
    for (const headers of [
      { id: 'msg_1', timestamp: undefined, signature: undefined },
      { id: 'msg_1', timestamp: `${seconds}`, signature: undefined },
      { ...standard(), id: 'msg_2' },
      { ...standard(), timestamp: `${seconds + 1}` },
    ]) {
      expect(judge({ signature, standard: headers })).toEqual({ proven: true, once: undefined });
      expect(judge({ secrets: [SECRET], standard: headers })).toEqual({ proven: true, once: undefined });
    }
    // What is signed counts, whatever else is right.
    expect(idOf({ standard: standard(), signature, secrets: [SECRET] })).toBe(idOf({ standard: standard() }));
    expect(idOf({ ...stamped(), secrets: [SECRET] })).toBe(idOf(stamped()));
  });

  test('an endless id is refused', () => {
    expect(judge({ standard: standard(seconds, 'x'.repeat(257)) }).proven).toBe(false);
  });
});
