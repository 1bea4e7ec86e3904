# For a CMakeLists.txt of your own:
#
#   include(<tatcell>/firmware/recipes/cmake/tatcell-firmware.cmake)
#   tatcell_firmware(cortex-m0)                 # or cortex-m3, cortex-m4-hard, rv32imc ...; [single|critical]
#   target_link_libraries(app PRIVATE tatcell::firmware)
#
# `make -C firmware lib` in the tatcell source tree builds the archives.
get_filename_component(TATCELL_ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TATCELL_FIRMWARE_DIR "${TATCELL_ROOT}/target/firmware" CACHE PATH "Where `make -C firmware lib` puts the archives")

# Names the archive of a core. Code of an older core runs on the newer ones; the float ABI must be that of the program.
function(tatcell_firmware_triple cpu result)
    if(cpu MATCHES "^cortex-m(0|0plus|1|23)$")
        set(triple thumbv6m-none-eabi)
    elseif(cpu MATCHES "^cortex-m(3|4|7|33)$")
        set(triple thumbv7m-none-eabi)
    elseif(cpu MATCHES "^cortex-m(4|7|33)-hard$")
        set(triple thumbv7em-none-eabihf)
    elseif(cpu MATCHES "^rv32(imc|imac)$")
        set(triple riscv32${CMAKE_MATCH_1}-unknown-none-elf)
    else()
        message(FATAL_ERROR "tatcell: no archive for ${cpu}")
    endif()
    set(${result} ${triple} PARENT_SCOPE)
endfunction()

function(tatcell_firmware cpu)
    set(sharing single)
    if(ARGC GREATER 1)
        set(sharing ${ARGV1})
    endif()
    tatcell_firmware_triple(${cpu} triple)
    set(archive "${TATCELL_FIRMWARE_DIR}/${triple}/libtatcell-${sharing}.a")
    if(NOT EXISTS "${archive}")
        message(FATAL_ERROR "tatcell: ${archive} is missing: run `make -C firmware lib` in ${TATCELL_ROOT}")
    endif()
    add_library(tatcell::firmware STATIC IMPORTED GLOBAL)
    set_target_properties(tatcell::firmware PROPERTIES IMPORTED_LOCATION "${archive}"
        INTERFACE_INCLUDE_DIRECTORIES "${TATCELL_ROOT}/include")
endfunction()
