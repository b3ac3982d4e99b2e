import { expect, test } from 'vitest';
import { isSlackEndpoint, slackMessage } from './slack.ts';

test.each([
  ['slack', 'http://127.0.0.1:1/x', true],
  ['ops', 'https://hooks.slack.com/services/T/B/X', true],
  ['ops', 'https://chat.example.com/hooks/abc#slack', true],
  ['ops', 'https://chat.example.com/hooks/abc', false],
  ['ops', 'https://hooks.slack.com.evil.example/services', false],
  ['ops', 'https://chat.example.com/#slack-like', false],
  ['slacker', 'https://chat.example.com/', false],
  ['slack-ops', 'https://chat.example.com/', false],
])('channel %s at %s: %s', (channel, url, expected) => {
  expect(isSlackEndpoint(channel, url)).toBe(expected);
});

test('a notification has its text, escaped, with the severity as a mark', () => {
  const message = slackMessage('notification', {
    service_name: 'shop',
    message: 'a < b & <!channel>',
    severity: 'warning',
  });
  const text = ':warning: a &lt; b &amp; &lt;!channel&gt;';
  expect(message).toEqual({
    text,
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text } },
      {
        type: 'context',
        elements: [
          { type: 'mrkdwn', text: 'service shop' },
          { type: 'mrkdwn', text: 'warning' },
        ],
      },
    ],
  });
});

test('the event of a job says which, and what is known of it', () => {
  const { blocks } = slackMessage('job.failed', {
    message: 'no',
    severity: 'error',
    job: {
      job_id: 'deploy-shop-1-1',
      strategy: null,
      reason: 'ImagePull',
      requested_by: '<a>',
      old_version: '0.9',
      step: 1,
    },
  });
  expect(blocks[1]).toEqual({
    type: 'context',
    elements: [
      'job.failed',
      'job id deploy-shop-1-1',
      'old version 0.9',
      'reason ImagePull',
      'requested by &lt;a&gt;',
    ].map((text) => ({ type: 'mrkdwn', text })),
  });
});

test.each(['x'.repeat(20_000), '&'.repeat(5000), '😀'.repeat(4000), `${'x'.repeat(2880)}${'<'.repeat(10)}`])(
  'a long message is cut where Slack takes it: between characters',
  (message) => {
    const { text, blocks } = slackMessage('notification', { message, severity: 'info' });
    const [section] = blocks as [{ text: { text: string } }];
    expect(section.text.text.length).toBeLessThanOrEqual(3000);
    expect(text.length).toBeLessThanOrEqual(12_001);
    for (const shown of [text, section.text.text]) {
      expect(shown.isWellFormed()).toBe(true);
      expect(shown).not.toMatch(/&(?!amp;|lt;|gt;)/);
    }
  },
);
