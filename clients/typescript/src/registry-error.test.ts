import { describe, expect, it } from 'vitest';
import { errorFromAnswer, isServiceNotFound, isUnreachable, unreachable } from './registry-error.ts';

const server = 'http://one:3001';

describe('errorFromAnswer', () => {
  it.each([
    { text: '{"error":"Service not found","message":"no shop"}', error: 'Service not found', message: 'no shop' },
    { text: '{"error":"Service not found"}', error: 'Service not found', message: 'Service not found' },
    { text: '<html>Bad gateway</html>', error: 'HTTP 502', message: 'the registry answered with status 502' },
    { text: '["error"]', error: 'HTTP 502', message: 'the registry answered with status 502' },
    { text: '{"error":{"code":"RATE_LIMITED","message":"Slow down"}}', error: 'RATE_LIMITED', message: 'Slow down' },
    { text: '{"error":{"code":1}}', error: 'HTTP 502', message: 'the registry answered with status 502' },
    { text: '', error: 'HTTP 502', message: 'the registry answered with status 502' },
  ])('reads $text', ({ text, error, message }) => {
    expect(errorFromAnswer(502, text, server)).toMatchObject({ status: 502, error, message, server });
  });

  it.each([
    { status: 404, text: '', expected: true },
    { status: 400, text: '{"error":"Service not found","message":"x"}', expected: true },
    { status: 400, text: '{"error":"Invalid service name","message":"x"}', expected: false },
    { status: 503, text: '', expected: false },
  ])('status $status with $text means not found: $expected', ({ status, text, expected }) => {
    expect(isServiceNotFound(errorFromAnswer(status, text, server))).toBe(expected);
  });
});

describe('unreachable', () => {
  it('names the innermost reason', () => {
    const cause = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:3001') });
    const error = unreachable(server, cause);
    expect(error.message).toBe('http://one:3001 cannot be reached: connect ECONNREFUSED 127.0.0.1:3001');
    expect(isUnreachable(error)).toBe(true);
    expect(error.cause).toBe(cause);
  });

  it('names the code where there is no message', () => {
    const cause = new TypeError('fetch failed', {
      cause: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
    });
    expect(unreachable(server, cause).message).toContain('ECONNREFUSED');
  });
});
