#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Drops what launchers and collectors of logs put before a line, one or several: tags ("0: ",
/// " 12: ", "node7: ", "[1,3]<stdout>:", "[pod/job-0/main] ", "(worker, pid=71) ") and times
/// ("2025-02-01T10:11:12.131Z ", "[2025-02-01 10:11:12,131] ", "Sat Feb  1 10:11:12
/// 2025<stdout>:"), levels ("INFO:root:"), each with one blank behind it. A line that is only a tag
/// becomes empty.
/// `tag` gets those that are no times and levels, which tell who wrote the line.
void drop_tags(std::string_view& line, std::string* tag = nullptr);

}  // namespace lockstep
