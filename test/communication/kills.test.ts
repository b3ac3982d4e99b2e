import { expect, test } from 'vitest';
import { killMessaging } from './message-kills.ts';

test('kill -9 of replicas, PostgreSQL and Redis under load: each message leaves once, or is unknown', {
  timeout: 400_000,
}, async () => {
  expect(await killMessaging(4)).toEqual([]);
});
