#include "app/program_identity.h"

#include <cstring>
#include <elf.h>
#include <link.h>

#include <fmt/format.h>

#include "app/build_facts.h"

namespace lockstep {
namespace {

/// The build id among the notes of a program that is loaded at `base`.
std::string build_id_in(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) {
      continue;
    }
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note{};
      std::memcpy(&note, at, sizeof note);
      const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
      const char* name = at + sizeof note;
      const char* bytes = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        std::string hex;
        for (std::size_t b = 0; b < note.n_descsz; ++b) {
          hex += fmt::format("{:02x}", static_cast<unsigned char>(bytes[b]));
        }
        return hex;
      }
      at = bytes + padded(note.n_descsz);
    }
  }
  return {};
}

}  // namespace

std::string program_identity() {
  std::string id;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        *static_cast<std::string*>(found) = build_id_in(*info);
        return 1;  // the first is the program itself
      },
      &id);
  return fmt::format("{} {}", version_text(), id);
}

}  // namespace lockstep
