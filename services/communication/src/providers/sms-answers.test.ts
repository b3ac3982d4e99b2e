import { expect, test } from 'vitest';
import { reportsOfAnswer } from './sms-answers.ts';

const answer = { id: 'a', from: '27821234567' };
const recipient = '+27821234567';
const stop = { eventKey: 'a:STOP', recipient, reason: 'STOP', suppress: { kind: 'opted-out' } };
const start = { eventKey: 'a:START', recipient, reason: 'START', isOptIn: true };

test.each([
  { text: 'STOP', reports: [stop] },
  { text: ' stop\n', reports: [stop] },
  { text: 'Unsubscribe', reports: [stop] },
  { text: 'please stop by tomorrow', reports: [] },
  { text: 'start', reports: [start] },
  { text: 'UNSTOP', reports: [start] },
  { text: 'yes', reports: [] },
  { text: '', reports: [] },
  { text: 'arrêt', decided: 'STOP', reports: [stop] },
  { text: 'oui', decided: 'START', reports: [start] },
  { text: 'help', decided: 'HELP', reports: [] },
  { text: 'STOP', from: '+27821234567', reports: [stop] },
  { text: 'STOP', from: 'Acacia', reports: [] },
])('$text from $from, decided as $decided, reports $reports', ({ reports, ...said }) => {
  expect(reportsOfAnswer({ ...answer, ...said })).toEqual(reports);
});
