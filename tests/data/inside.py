def allocate(setting, table, run, memory):  # noqa: ARG001
    for a in range(setting.size):
        run.w[a] = setting.inside[a]
