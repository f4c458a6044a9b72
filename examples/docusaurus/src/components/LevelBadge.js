// What the chapters of the example book put below their title: `<LevelBadge level="intermediate" minutes={14} />`.
export default function LevelBadge({ level, minutes }) {
  return (
    <p>
      <span className="badge badge--secondary">{level}</span> {minutes} minutes
    </p>
  );
}
