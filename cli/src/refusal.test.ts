import { describe, expect, it } from 'vitest';
import { refusalOf } from './refusal.ts';

const messageOf = (error: unknown) =>
  refusalOf({ status: 409, text: JSON.stringify({ error }), server: 'http://127.0.0.1:3000' }).message;

describe('a refusal', () => {
  it('has the details that its message speaks of', () => {
    const details = { status: 'needs_review', left: 9950, currencies: ['ZAR'] };
    expect(messageOf({ code: 'CONFLICT', message: 'details.status has it', details })).toBe(
      'details.status has it (status: needs_review, left: 9950, currencies: ["ZAR"])',
    );
  });

  it('does not repeat the fields, which its message names', () => {
    const details = { fields: [{ path: 'body/to', message: 'is required' }] };
    expect(messageOf({ code: 'INVALID_REQUEST', message: 'body/to is required', details })).toBe('body/to is required');
  });

  it.each([undefined, null, 'x', { code: 'X', message: 'none' }, { code: 'X', message: 'none', details: null }])(
    'without details is what it says: %j',
    (error) => {
      expect(messageOf(error)).not.toContain('(');
    },
  );

  it('keeps its status and code, for the exit code', () => {
    const text = JSON.stringify({ error: { code: 'CONFLICT', message: 'no', details: { status: 'failed' } } });
    const refused = refusalOf({ status: 409, text, server: 'http://127.0.0.1:3000' });
    expect(refused).toMatchObject({ status: 409, error: 'CONFLICT', server: 'http://127.0.0.1:3000' });
  });
});
