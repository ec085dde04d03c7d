// Every setting of the selected stage, made from the schema of the loop file; and the file itself: load, save, duplicate, run.
import { useEffect, useState } from "react";
import { STAGES, STATE_LABEL, type Stage, type StateName } from "../graph/stages";
import { isPlaced, PLACEABLE, remove, SECTION, setField, SWITCH, useCompose, type SchemaField, type Section } from "../state/compose";
import { useUi } from "../state/ui";
import { useLayout } from "./useLayout";
import type { Finding } from "../api/client";

const DEFS: Record<string, string> = { control: "Control", foundation: "Foundation", perceive: "Perceive", reason: "Reason", act: "Act", verify: "Verify", learn: "Learn" };

export function ComposeForm({ run }: { run(): void }) {
  const { spec, schema, findings, files, name, dirty, load, save, fresh, text } = useCompose();
  const { selected } = useUi();
  const [as, setAs] = useState(name);
  const [source, setSource] = useState(false);
  useEffect(() => setAs(name), [name]);
  const section = SECTION[selected] ?? "control";
  const own = SWITCH[selected]?.field;
  const shown = Object.entries(schema?.$defs[DEFS[section]!]?.properties ?? {}).filter(([key]) => !own || key === own);
  const values = (spec[section] ?? {}) as Section;
  const stage = (own ? selected : section) as Stage;
  const wrong = findings.filter((one) => one.severity !== "warning").length;
  const empty = ![...PLACEABLE, "planning"].some((one) => isPlaced(spec, one));
  const canRun = wrong === 0 && !empty;
  const phone = useLayout() === "phone";
  const [open, setOpen] = useState(false);
  const title = STATE_LABEL[selected as StateName] ?? STAGES[stage]?.label ?? section;
  const verdict = wrong ? `${wrong} to mend` : findings.length ? `${findings.length} worth a thought` : empty ? "nothing drawn yet" : "sound";
  const bar = phone && (
    <div className="formbar">
      <button aria-expanded={open} onClick={() => setOpen(!open)}><span className="grab" /><b>{open ? "Back to the canvas" : title}</b>{!open && <em className={wrong ? "error" : findings.length ? "warning" : empty ? "none" : ""}>{verdict}</em>}</button>
      {!open && <button className="good" disabled={!canRun} onClick={run}>Start</button>}
    </div>
  );
  if (phone && !open) return <section className="form" aria-label="Settings">{bar}</section>;
  return (
    <section className={`form ${phone ? "sheeted" : ""}`} aria-label="Settings">
      {bar}
      <div className="row">
        <select aria-label="Loop files" value={name} onChange={(e) => (e.target.value ? void load(e.target.value) : fresh())}>
          <option value="">new loop</option>
          {files.map((one) => <option key={one.name} value={one.name}>{one.title}{one.valid ? "" : " (faulty)"}</option>)}
        </select>
      </div>
      <label className="field"><span>Name</span><input value={spec.name ?? ""} maxLength={100} onChange={(e) => setField("", "name", e.target.value)} /></label>
      <label className="field"><span>Task</span><textarea rows={3} value={spec.task ?? ""} onChange={(e) => setField("", "task", e.target.value)} /></label>
      <h2>{title}</h2>
      <p className="quiet">{STAGES[stage]?.means}</p>
      {shown.map(([key, field]) => (
        <Field key={`${section}.${key}`} name={key} field={field} value={values[key]} mark={markOf(findings, `${section}.${key}`)} set={(value) => setField(section, key, value)} />
      ))}
      {PLACEABLE.includes(selected) && isPlaced(spec, selected) && <button onClick={() => remove(selected)}>Take it off the canvas</button>}
      <h3>{wrong ? "To mend" : findings.length ? "Worth a thought" : "Checks"}<em>{findings.length || verdict}</em></h3>
      <ul className="findings">
        {findings.map((one, at) => <li key={at} className={one.severity}><code>{one.line}:{one.column}</code> {one.message}</li>)}
      </ul>
      <div className="row">
        <input aria-label="File name" placeholder="file name" value={as} onChange={(e) => setAs(e.target.value)} />
        <button disabled={!as} onClick={() => void save(as)}>{name && as !== name ? "Duplicate" : dirty ? "Save" : "Saved"}</button>
      </div>
      <div className="row">
        <button className="good" disabled={!canRun} onClick={run}>Start this loop</button>
        <button onClick={() => setSource(!source)} aria-expanded={source}>File</button>
      </div>
      {source && <pre className="artifact" aria-label="The loop file">{text || "not written yet"}</pre>}
    </section>
  );
}

/** What the checks say of a field: nothing, a warning, something wrong. */
function markOf(findings: Finding[], path: string): string {
  const found = findings.filter((one) => one.path === path || one.path.startsWith(`${path}.`) || one.path.startsWith(`${path}[`));
  return found.some((one) => one.severity !== "warning") ? "bad" : found.length ? "warned" : "";
}

function Field({ name, field, value, mark, set }: { name: string; field: SchemaField; value: unknown; mark: string; set(value: unknown): void }) {
  const one = field.anyOf?.find((it) => it.type !== "null") ?? field;
  const label = name.replaceAll("_", " ");
  const help = field.description ?? one.description;
  if (one.type === "boolean")
    return <label className={`field ${mark}`}><input type="checkbox" checked={value === true} onChange={(e) => set(e.target.checked || undefined)} /> {label}<small>{help}</small></label>;
  if (one.enum)
    return (
      <label className={`field ${mark}`}><span>{label}</span><small>{help}</small>
        <select value={String(value ?? "")} onChange={(e) => set(e.target.value || undefined)}><option value="">default</option>{one.enum.map((it) => <option key={String(it)}>{String(it)}</option>)}</select>
      </label>
    );
  const list = one.type === "array";
  const number = one.type === "integer" || one.type === "number";
  const shown = list ? ((value as unknown[] | undefined) ?? []).join(", ") : String(value ?? "");
  const read = (text: string): unknown => {
    if (!text.trim()) return undefined;
    if (list) return text.split(",").map((it) => it.trim()).filter(Boolean).map((it) => (one.items?.type === "integer" && /^\d+$/.test(it) ? Number(it) : it));
    return number && /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
  };
  return <Typed label={label} help={help} shown={shown} mark={mark} long={name === "instructions"} commit={(text) => set(read(text))} />;
}

/** Committed when the field is left, so that undo takes back a whole value and not a letter. */
function Typed({ label, help, shown, mark, long, commit }: { label: string; help?: string; shown: string; mark: string; long: boolean; commit(text: string): void }) {
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const more = { value: text, onChange: (e: { target: { value: string } }) => setText(e.target.value), onBlur: () => { if (text !== shown) commit(text); } };
  return (
    <label className={`field ${mark}`}><span>{label}</span><small>{help}</small>
      {long ? <textarea rows={3} {...more} /> : <input {...more} onKeyDown={(e) => { if (e.key === "Enter") e.currentTarget.blur(); }} />}
    </label>
  );
}
