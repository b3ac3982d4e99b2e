import { createReadStream } from 'node:fs';
import type { App } from '@rollcall/platform/http/server.ts';

const PATH = '/api/graphiql';
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

const REACT = import.meta.resolve('react/package.json');
const REACT_DOM = import.meta.resolve('react-dom/package.json');
const GRAPHIQL = import.meta.resolve('graphiql/package.json');

/** What the page asks for, and where the packages have it. */
const FILES = [
  { name: 'react.js', file: new URL('umd/react.production.min.js', REACT), type: SCRIPT },
  { name: 'react-dom.js', file: new URL('umd/react-dom.production.min.js', REACT_DOM), type: SCRIPT },
  { name: 'graphiql.js', file: new URL('graphiql.min.js', GRAPHIQL), type: SCRIPT },
  { name: 'graphiql.css', file: new URL('graphiql.min.css', GRAPHIQL), type: STYLE },
];

/** Links are relative: proxies have the page below other prefixes. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GraphiQL</title>
<link rel="stylesheet" href="graphiql/graphiql.css">
<link rel="stylesheet" href="graphiql/page.css">
<script defer src="graphiql/react.js"></script>
<script defer src="graphiql/react-dom.js"></script>
<script defer src="graphiql/graphiql.js"></script>
<script defer src="graphiql/page.js"></script>
</head>
<body><main id="graphiql">GraphiQL needs scripts.</main></body>
</html>
`;

const PAGE_STYLE = 'body { margin: 0 } #graphiql { height: 100vh }';

/** The token is typed in as a header, and kept nowhere: the history of GraphiQL has headers, too. */
const PAGE_SCRIPT = `
const kept = new Map();
const storage = {
  get length() {
    return kept.size;
  },
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, value) => void kept.set(key, value),
  removeItem: (key) => void kept.delete(key),
  clear: () => kept.clear(),
};
async function* answersIn(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; ; ) {
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    if (done) return;
    const events = (text + value).split('\\n\\n');
    text = events.pop();
    for (const event of events) {
      const data = event.split('\\n').find((line) => line.startsWith('data: '));
      if (event.startsWith('event: next')) yield JSON.parse(data.slice('data: '.length));
    }
  }
}
const ask = async (operation, headers, onAnswered) => {
  const stopping = new AbortController();
  const answer = await fetch('graphql', {
    method: 'POST',
    credentials: 'omit',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream, application/json;q=0.9' },
    body: JSON.stringify(operation),
    signal: stopping.signal,
  });
  if (answer.ok) onAnswered();
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer.json();
  const answers = answersIn(answer.body);
  const end = answers.return.bind(answers);
  answers.return = () => {
    stopping.abort();
    return end();
  };
  return answers;
};
function Page() {
  const [caller, setCaller] = React.useState();
  // GraphiQL reads the schema anew by another fetcher: without a token it could not read it.
  const fetcher = React.useMemo(
    () => (operation, { headers = {} } = {}) => ask(operation, headers, () => setCaller(headers.authorization)),
    [caller],
  );
  return React.createElement(GraphiQL, {
    fetcher,
    storage,
    defaultEditorToolsVisibility: 'headers',
    defaultHeaders: '{"authorization": "Bearer "}',
    shouldPersistHeaders: false,
    showPersistHeadersSettings: false,
  });
}
ReactDOM.createRoot(document.getElementById('graphiql')).render(React.createElement(Page));
`;

/** What the page may do: its own scripts, styles and calls, and nothing of other places. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    // The editor's dialogs put their style into the page.
    "style-src 'self' 'unsafe-inline'",
    "connect-src 'self'",
    'img-src data:',
    'font-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};
/** The names say no version. */
const CACHED = 'public, max-age=3600';

/**
 * `GET /api/graphiql`: the graph for people, by GraphiQL. The page is open to all, and calls
 * `/api/graphql` with the token that its reader gives it.
 */
export function graphiqlRoute(app: App): void {
  app.get(PATH, (_request, reply) => reply.headers(HEADERS).type('text/html; charset=utf-8').send(PAGE));
  app.get(`${PATH}/page.js`, (_request, reply) => reply.headers(HEADERS).type(SCRIPT).send(PAGE_SCRIPT));
  app.get(`${PATH}/page.css`, (_request, reply) => reply.headers(HEADERS).type(STYLE).send(PAGE_STYLE));
  for (const { name, file, type } of FILES) {
    app.get(`${PATH}/${name}`, (_request, reply) =>
      reply
        .headers({ ...HEADERS, 'cache-control': CACHED })
        .type(type)
        .send(createReadStream(file)),
    );
  }
}
