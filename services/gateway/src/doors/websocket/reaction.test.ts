import { expect, test } from 'vitest';
import { type ConnectionView, reactTo } from './reaction.ts';

const view: ConnectionView = {
  subscriptions: new Map([['jobs', undefined]]),
  maxSubscriptions: 2,
  access: (channel) => {
    if (channel === 'secret') return { missing: 'secret:read' };
    return ['jobs', 'registrations'].includes(channel) ? 'allowed' : 'unknown';
  },
};

const react = (message: object, more: Partial<ConnectionView> = {}) =>
  reactTo(JSON.stringify(message), { ...view, ...more });

test('answers ping with the same id', () => {
  expect(react({ type: 'ping', id: '7' })).toEqual({ act: 'answer', answer: { type: 'pong', id: '7' } });
  expect(react({ type: 'ping' })).toEqual({ act: 'answer', answer: { type: 'pong' } });
});

test('subscribes, with the cursor', () => {
  const message = { type: 'subscribe', id: '1', channel: 'registrations', payload: { cursor: '42' } };
  expect(react(message)).toEqual({
    act: 'subscribe',
    channel: 'registrations',
    cursor: '42',
    answer: { type: 'subscribed', id: '1', channel: 'registrations' },
  });
});

test('unsubscribes', () => {
  expect(react({ type: 'unsubscribe', channel: 'jobs' })).toMatchObject({
    act: 'unsubscribe',
    answer: { type: 'unsubscribed', channel: 'jobs' },
  });
});

test.each([
  ['INVALID_MESSAGE', { type: 'shout', id: '1' }],
  ['NOT_SUBSCRIBED', { type: 'unsubscribe', id: '1', channel: 'registrations' }],
  ['UNKNOWN_CHANNEL', { type: 'subscribe', id: '1', channel: 'weather' }],
  ['INSUFFICIENT_SCOPE', { type: 'subscribe', id: '1', channel: 'secret' }],
  ['ALREADY_SUBSCRIBED', { type: 'subscribe', id: '1', channel: 'jobs' }],
])('%s', (code, message) => {
  expect(react(message)).toMatchObject({ act: 'answer', answer: { type: 'error', id: '1', payload: { code } } });
});

test('a connection has only so many subscriptions', () => {
  const message = { type: 'subscribe', channel: 'registrations' };
  expect(react(message, { maxSubscriptions: 1 })).toMatchObject({
    answer: { channel: 'registrations', payload: { code: 'TOO_MANY_SUBSCRIPTIONS' } },
  });
});
