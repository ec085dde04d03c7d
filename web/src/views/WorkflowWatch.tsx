// A workflow has tasks and no turns of its own: what it waits for, what runs inside it, what it has come to, its log.
import type { Detail, LiveState } from "../api/client";
import { FamilyStrip } from "../parts/FamilyStrip";
import { Facts, WORDS } from "../parts/Inspector";
import { LogList } from "../parts/LogList";
import { money, plain, span, waiting } from "../parts/words";
import { useUi } from "../state/ui";

export function WorkflowWatch({ detail, live }: { detail: Detail; live: LiveState }) {
  const go = useUi((s) => s.go);
  const { execution: one, rest } = detail;
  const waits = live.status === "running" ? (one.waits ?? []) : [];
  const own = waits.find((wait) => !wait.child && wait.request_id)?.for ?? "";
  const asked = own || (live.status !== "waiting-input" ? "" : one.pending?.kind === "question" ? "answer" : "decision");
  const spent = `${money(one.cost_usd)}${one.in_doubt_usd ? ` (+ ${money(one.in_doubt_usd)} in doubt)` : ""}`;
  return (
    <>
      <FamilyStrip detail={detail} />
      <main className="workflow">
        <small className="over">Workflow</small>
        <h2>{live.status === "running" ? "Running" : (WORDS[live.status ?? ""] ?? live.status)}</h2>
        <p className="lead">{live.status === "running" ? `${waits.length ? "Goes on, and waits" : "Its tasks are at work"}.` : plain(rest.why)}</p>
        {waits.length > 0 && (
          <ul className="waitlist" aria-label="What it waits for">
            {waits.map((wait) => (
              <li key={`${wait.task} ${wait.request_id} ${wait.for}`} className={wait.for === "quota" || wait.for === "time" ? "" : "you"}>
                <span><b>{waiting({ waits: [wait], pending: null })}</b>{wait.prompt && <small>{wait.prompt}</small>}</span>
                {wait.child && <button onClick={() => go("watch", wait.child!)}>Open it</button>}
              </li>
            ))}
          </ul>
        )}
        {asked && <p>In a terminal: <code>treadle {asked === "answer" ? `answer ${one.execution_id} TEXT` : `approve ${one.execution_id}`}</code></p>}
        <Facts
          rows={[
            ["cost", spent],
            ["tokens", `${(one.usage?.input_tokens ?? 0).toLocaleString("en")} in · ${(one.usage?.output_tokens ?? 0).toLocaleString("en")} out`],
            ["active time", span(one.elapsed_ms ?? 0)],
            ["runs in", detail.here ? "this studio" : one.owner_alive ? detail.owner : "no process"],
            ["its tasks", `treadle show ${one.execution_id}`],
          ]}
        />
        <LogList />
      </main>
    </>
  );
}
