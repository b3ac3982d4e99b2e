import { readFile } from 'node:fs/promises';
import { systemClock } from '@rollcall/platform/clock.ts';
import { shapesOfArguments, shapesOfSchema, shapesOfType } from '@rollcall/platform/graphql/testing/shapes.ts';
import { expect, test } from 'vitest';
import { MessageDetails, MessagesQuery, MessagesResponse } from '../schemas/messages.ts';
import { emailBody, pushBody, type SendingRules, smsBody } from '../schemas/sending.ts';

const sdl = await readFile(new URL('schema.graphql', import.meta.url), 'utf8');
const rules: SendingRules = { ways: { mayBeFrom: () => true, region: 'ZA' }, clock: systemClock };
const key = { isRequired: false, isList: false, members: undefined };

test('a message has all that it has over REST', () => {
  expect(shapesOfType(sdl, 'Message')).toEqual(shapesOfSchema(MessageDetails));
});

test.each([
  ['SendEmailInput', emailBody(rules)],
  ['SendSMSInput', smsBody(rules)],
  ['SendPushInput', pushBody(rules)],
])('%s has all that the body has over REST', (name, body) => {
  expect(shapesOfType(sdl, name)).toEqual({ ...shapesOfSchema(body), idempotencyKey: key });
});

test('messages are found by what they are found by over REST', () => {
  expect(shapesOfArguments(sdl, 'messages')).toEqual(shapesOfSchema(MessagesQuery));
  const members = Object.keys(shapesOfSchema(MessagesResponse));
  expect(Object.keys(shapesOfType(sdl, 'MessagePage')).sort()).toEqual(members.sort());
});
